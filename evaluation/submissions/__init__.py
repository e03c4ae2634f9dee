"""Models that people submit: forms and quotas, pages, and the rules of who may see what.

The top layer of this app: the API, jobs and other apps import it.
"""
