"""The worker of gunicorn that serves the site: clients that are slow cost it no thread.

gunicorn's main process imports these modules, so they import nothing else of ours.
"""
