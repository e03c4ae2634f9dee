"""The application of `serve_model` behind its HTTP, in this process."""

import asyncio
import fcntl
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
import uvloop
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers.gasgi import ASGIWorker

from serving.asgi import Application
from serving.errors import LoadingError
from serving.registry import ModelRegistry, ServedModel
from serving.server import KEEP_ALIVE_SECONDS
from serving.spec import ModelSpec
from tests.support.live import ROOT
from tests.support.programs import PRODUCT_ONLY

PREPARED = ROOT / "var" / "prepared"


@contextmanager
def serving(registry: ModelRegistry, keys: Sequence[bytes] = ()) -> Iterator[int]:
    """The port that it answers at. keys: of a site, which alone may ask."""
    config, loop = Config(), uvloop.new_event_loop()
    config.set("keepalive", KEEP_ALIVE_SECONDS)  # two by default, which a busy machine outruns
    worker = ASGIWorker(0, os.getpid(), [], None, 0, config, Logger(config))
    worker.loop, worker.asgi = loop, Application(registry, keys)
    running = threading.Thread(target=loop.run_forever)
    running.start()
    listening = loop.create_server(lambda: ASGIProtocol(worker), "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(listening, loop).result(10)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(_close_connections(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        running.join(10)
        loop.close()


async def _close_connections() -> None:
    """End what still waits for a next request on a connection that was kept open."""
    waiting = asyncio.all_tasks() - {asyncio.current_task()}
    for task in waiting:
        task.cancel()
    if waiting:
        await asyncio.wait(waiting, timeout=5)


def wait_for(registry: ModelRegistry, name: str, seconds: int = 60) -> ServedModel:
    """The model, once it is loaded."""
    for _ in range(20 * seconds):
        try:
            return registry.get(name)
        except LoadingError:
            time.sleep(0.05)
    raise AssertionError(f"{name} was not loaded within {seconds} s")


def language_models(specs: dict[str, ModelSpec]) -> ModelRegistry:
    """A registry that has loaded these; one process of the tests prepares them for all others."""
    registry = ModelRegistry(specs.get, specs.keys, PREPARED)
    PREPARED.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch, (PREPARED / "lock").open("w") as lock:
        patch.setenv("PYTHONPATH", PRODUCT_ONLY)  # for what prepares them
        fcntl.flock(lock, fcntl.LOCK_EX)
        registry.load_new_models()
        for name in specs:
            wait_for(registry, name, seconds=300)
    return registry
