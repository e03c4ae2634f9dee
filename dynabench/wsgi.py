"""The web process: `gunicorn dynabench.wsgi`."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dynabench.settings")
application = get_wsgi_application()
gc.freeze()  # what is loaded stays: the collector need not walk over it for every few requests
