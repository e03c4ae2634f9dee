"""The application of `serve_model` behind its HTTP, in this process."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvloop
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers.gasgi import ASGIWorker

from tasks.targets.serving.asgi import Application
from tasks.targets.serving.errors import LoadingError
from tasks.targets.serving.registry import ModelRegistry, ServedModel


@contextmanager
def serving(registry: ModelRegistry) -> Iterator[int]:
    """The port that it answers at."""
    config, loop = Config(), uvloop.new_event_loop()
    worker = ASGIWorker(0, os.getpid(), [], None, 0, config, Logger(config))
    worker.loop, worker.asgi = loop, Application(registry)
    running = threading.Thread(target=loop.run_forever)
    running.start()
    listening = loop.create_server(lambda: ASGIProtocol(worker), "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(listening, loop).result(10)
    yield server.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(loop.stop)
    running.join(10)
    loop.close()


def wait_for(registry: ModelRegistry, name: str, seconds: int = 60) -> ServedModel:
    """The model, once it is loaded."""
    for _ in range(20 * seconds):
        try:
            return registry.get(name)
        except LoadingError:
            time.sleep(0.05)
    raise AssertionError(f"{name} was not loaded within {seconds} s")
