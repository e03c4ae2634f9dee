"""The gunicorn worker that serves the site. Slow clients do not occupy its threads.

gunicorn's main process imports these modules, so they import nothing else of ours at the top.
"""
