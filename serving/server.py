"""The HTTP server of the models: gunicorn with one worker process and an event loop."""

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
from .errors import ModelListUnavailableError
from .registry import ModelRegistry

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 75
"""How long an idle connection stays open.

Most callers close theirs earlier, so that no connection is closed while a request is on its way.
"""
CHECK_INTERVAL_SECONDS = 5.0
"""How often the server looks for newly registered models."""


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
        """Set gunicorn's settings, which have no other source."""
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
        """Create the application in the worker, begin to load its models, and return it."""
        # Every caller runs on one core; OpenMP's own threads collapse under load.
        os.environ["OMP_NUM_THREADS"] = "1"
        if hasattr(os, "SCHED_BATCH"):
            # Requests that come in wait for a turn rather than push the models aside one by one.
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        # After the fork: threads and the libraries' own state do not survive one.
        registry = self._make_registry()
        application = Application(registry, self._keys)

        def start_end_watch(worker: ASGIWorker) -> None:
            self._ending = worker.loop.create_task(_stop_when_answered(worker, application))

        self.cfg.set("post_worker_init", start_end_watch)
        self.cfg.set("worker_exit", lambda server, worker: registry.close())
        threading.Thread(target=_load_new_models_forever, args=[registry], daemon=True).start()
        return application


async def _stop_when_answered(worker: ASGIWorker, application: Application) -> None:
    """Stop the worker once all calls are answered, without waiting for idle connections."""
    while worker.alive or application.running_count:
        await asyncio.sleep(0.2)
    # Nothing is left to answer, so gunicorn may stop at once.
    worker.handle_quit_signal()


def _load_new_models_forever(registry: ModelRegistry) -> NoReturn:
    is_list_unavailable = False
    while True:
        is_list_unavailable = load_new_models(registry, is_list_unavailable)
        time.sleep(CHECK_INTERVAL_SECONDS)


def load_new_models(registry: ModelRegistry, was_unavailable: bool) -> bool:
    """Load newly registered models; return whether the list of models is unavailable.

    was_unavailable: whether it was unavailable before. The beginning and the end of an outage are
    logged.
    """
    try:
        registry.load_new_models()
    except ModelListUnavailableError as error:
        if not was_unavailable:
            logger.warning("%s Trying again every %d seconds.", error, CHECK_INTERVAL_SECONDS)
        return True
    except Exception:
        logger.exception("New models cannot be loaded")
        return was_unavailable
    if was_unavailable:
        logger.info("The site's models can be read.")
    return False
