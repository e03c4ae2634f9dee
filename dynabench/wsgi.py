"""The web process: `gunicorn dynabench.wsgi`."""

import gc
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from dynabench.lib.frames import with_room
from dynabench.lib.telemetry.measures import count_together
from dynabench.lib.telemetry.tracing import start_tracing

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dynabench.settings")
# Leaderboards multiply matrices: each request by itself, the other cores are for other requests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("PREPARE_STATEMENTS", "1")
if settings.METRICS_TOKEN or settings.METRICS_NETWORKS:
    count_together(settings.HOME / "metrics")
if settings.HAS_TRACES:
    start_tracing()
served = get_wsgi_application()  # the apps first: what follows reads models
from dynabench.health import once_migrated  # noqa: E402

application = with_room(once_migrated(served))
# What is loaded stays, and a request makes some ten thousand objects that go with it: look for
# cycles rarely, and not among what stays.
gc.freeze()
gc.set_threshold(50_000, 20, 20)
