"""The HTTP server of the models: gunicorn, one worker process with an event loop."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from gunicorn.app.base import BaseApplication
from gunicorn.workers.gasgi import ASGIWorker

from .asgi import Application
from .errors import NotKnownError
from .registry import ModelRegistry

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 75
"""How long a connection may rest between two requests: longer than most callers keep theirs, so
that they close it, and none is closed while a request is on its way."""
LOOK_SECONDS = 5.0
"""How often the server looks for models that were registered meanwhile."""


class ModelServer(BaseApplication):  # type: ignore[misc]
    """A gunicorn application that serves a registry until SIGTERM or SIGINT.

    The registry and its models are created in the worker, after the fork, because threads and
    models do not survive one. keys: see `Application`.
    """

    def __init__(
        self,
        make_registry: Callable[[], ModelRegistry],
        *,
        host: str,
        port: int,
        keys: Sequence[bytes] = (),
    ) -> None:
        self._make_registry, self._bind, self._keys = make_registry, f"{host}:{port}", keys
        super().__init__()

    def load_config(self) -> None:
        """Set gunicorn's settings. There is no other source of them."""
        settings: dict[str, Any] = {
            "bind": self._bind,
            "workers": 1,
            "worker_class": "asgi",
            "asgi_loop": "uvloop",
            "asgi_lifespan": "off",
            "keepalive": KEEP_ALIVE_SECONDS,
            "timeout": 120,
            "graceful_timeout": 10,
            "control_socket_disable": True,  # it would live in the user's home
            "proc_name": "dynabench-models",
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Application:
        """Create the application in the worker."""
        # Every caller runs on one core; OpenMP's own threads collapse under load.
        os.environ["OMP_NUM_THREADS"] = "1"
        if hasattr(os, "SCHED_BATCH"):
            # Requests that come in wait for a turn rather than push the models aside one by one.
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        # After the fork: threads and the libraries' own state do not survive one.
        registry = self._make_registry()
        application = Application(registry, self._keys)

        def start(worker: ASGIWorker) -> None:
            self._ending = worker.loop.create_task(_end(worker, application))

        self.cfg.set("post_worker_init", start)
        self.cfg.set("worker_exit", lambda server, worker: registry.close())
        threading.Thread(target=_keep_loaded, args=[registry], daemon=True).start()
        return application


async def _end(worker: ASGIWorker, application: Application) -> None:
    """Stop the worker once all calls are answered; gunicorn would wait for idle connections."""
    while worker.alive or application.running:
        await asyncio.sleep(0.2)
    # Nothing is left to answer, so gunicorn may stop at once.
    worker.handle_quit_signal()


def _keep_loaded(registry: ModelRegistry) -> NoReturn:
    is_away = False
    while True:
        is_away = look_for_models(registry, is_away)
        time.sleep(LOOK_SECONDS)


def look_for_models(registry: ModelRegistry, was_away: bool) -> bool:
    """Load newly registered models; return whether the list of models is unavailable.

    was_away: whether it was unavailable before. The beginning and the end of such a time are
    logged.
    """
    try:
        registry.load_new()
    except NotKnownError as error:
        if not was_away:
            logger.warning("%s Trying again every %d seconds.", error, LOOK_SECONDS)
        return True
    except Exception:
        logger.exception("New models cannot be loaded")
        return was_away
    if was_away:
        logger.info("The site's models can be read.")
    return False
