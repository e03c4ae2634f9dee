"""The web process: `gunicorn dynabench.wsgi`.

It is prepared in this order, because each step changes what the next one imports:

1. The environment variables that libraries read once, when they are loaded.
2. The settings. An invalid one ends the start with a one-line message.
3. Metrics and traces, which hook into libraries before these are loaded.
4. The apps, and only then whatever uses models.
5. The application, and the garbage collector, tuned for a serving process.
"""

import gc
import os

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from gunicorn.errors import AppImportError

from core.env import EnvError
from core.telemetry.measures import set_up_shared_counters
from core.telemetry.tracing import start_tracing
from core.web.frames import wrap_with_frame_room

OBJECTS_BEFORE_COLLECTION = 50_000
"""The number of new objects after which the garbage collector runs. Python's default is 700."""


def set_environment() -> None:
    """Set the environment variables for web processes, unless the operator has set them."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dynabench.settings")
    # Leaderboards multiply matrices. A request uses one core, the others serve other requests.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # PostgreSQL keeps the plans of what pages ask. Commands, such as imports, would go on by a plan
    # made for an empty table.
    os.environ.setdefault("PREPARE_STATEMENTS", "1")


def has_metrics() -> bool:
    """Return whether the operator enabled metrics. Reads the settings.

    Raises AppImportError for an invalid setting, so that gunicorn prints the message without a
    traceback and stops.
    """
    try:
        return bool(settings.METRICS_TOKEN or settings.METRICS_NETWORKS)
    except EnvError as error:
        raise AppImportError(str(error)) from None


def start_measuring() -> None:
    """Set up the counting of requests and the sending of traces, if the operator enabled them."""
    if has_metrics():
        # Names the folder of the counts before the apps load prometheus_client.
        set_up_shared_counters(settings.HOME / "metrics")
    if settings.HAS_TRACES:
        # This process is forked already; the thread that sends spans would not survive a fork.
        start_tracing()


def load_apps() -> None:
    """Load the apps without garbage collection, because loading creates hardly any garbage.

    `dynabench.apps` enables the collector again once all apps are ready.
    """
    gc.disable()
    django.setup(set_prefix=False)  # as Django's get_wsgi_application: requests set the prefix


def tune_collector() -> None:
    """Make garbage collection rare, and exclude what is loaded now.

    Loaded objects live as long as the process. A request creates some ten thousand objects, which
    are freed at its end without being collected.
    """
    gc.freeze()
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION, 20, 20)


set_environment()
start_measuring()
load_apps()
from dynabench.health import open_when_ready  # noqa: E402 - it reads models

application = wrap_with_frame_room(open_when_ready(WSGIHandler))
tune_collector()
