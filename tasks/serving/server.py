"""The HTTP server of the models: gunicorn, one worker process with many threads."""

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from gunicorn.app.base import BaseApplication

from .registry import ModelRegistry
from .wsgi import Application

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often the server looks for models that were registered meanwhile."""


class ModelServer(BaseApplication):  # type: ignore[misc]
    """Serves a registry until SIGTERM or SIGINT.

    The registry is made and its models are loaded in the worker, after the fork, so that no
    thread and no model crosses it. More requests at once than `threads` wait unseen;
    keep it above the registry's `max_queued`, so that a full queue is answered and not waited for.
    """

    def __init__(
        self,
        make_registry: Callable[[], ModelRegistry],
        *,
        host: str,
        port: int,
        threads: int,
    ) -> None:
        self._make_registry = make_registry
        self._bind, self._threads = f"{host}:{port}", threads
        super().__init__()

    def load_config(self) -> None:
        """Gunicorn's settings, from nowhere but here."""
        settings: dict[str, Any] = {
            "bind": self._bind,
            "workers": 1,
            "worker_class": "gthread",
            "threads": self._threads,
            "worker_connections": 1000,
            "keepalive": 75,
            "timeout": 120,
            "graceful_timeout": 10,
            "control_socket_disable": True,  # it would live in the user's home
            "proc_name": "dynabench-models",
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Application:
        """The application, made in the worker."""
        # Every caller runs on one core; OpenMP's own threads collapse under load.
        os.environ["OMP_NUM_THREADS"] = "1"
        registry = self._make_registry()
        self.cfg.set("worker_exit", lambda server, worker: registry.close())
        threading.Thread(target=_keep_loaded, args=[registry], daemon=True).start()
        return Application(registry)


def _keep_loaded(registry: ModelRegistry) -> NoReturn:
    while True:
        try:
            registry.load_new()
        except Exception:  # the database may be away for a while
            logger.exception("The names of the models cannot be read")
        time.sleep(LOOK_SECONDS)
