"""The write page and the practice page: forms, values for templates, views."""
