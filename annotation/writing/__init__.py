"""The write page and the practice page: forms, values for templates, views.

Later stages show examples with `result_panel` and build forms with `forms`.
"""
