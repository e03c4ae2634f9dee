"""The web process: `gunicorn dynabench.wsgi`."""

import gc
import os

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from gunicorn.errors import AppImportError

from core.env import EnvError
from core.telemetry.measures import count_together
from core.telemetry.tracing import start_tracing
from core.web.frames import with_room

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dynabench.settings")
# Leaderboards multiply matrices: each request by itself, the other cores are for other requests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("PREPARE_STATEMENTS", "1")
try:
    has_metrics = bool(settings.METRICS_TOKEN or settings.METRICS_NETWORKS)
except EnvError as error:  # gunicorn prints the line, without a traceback, and stops
    raise AppImportError(str(error)) from None
if has_metrics:
    count_together(settings.HOME / "metrics")
if settings.HAS_TRACES:
    start_tracing()
gc.disable()  # until the apps are ready
django.setup(set_prefix=False)  # the apps first: what follows reads models
from dynabench.health import once_ready  # noqa: E402

application = with_room(once_ready(WSGIHandler))
# What is loaded stays, and a request makes some ten thousand objects that go with it: look for
# cycles rarely, and not among what stays.
gc.freeze()
gc.set_threshold(50_000, 20, 20)
