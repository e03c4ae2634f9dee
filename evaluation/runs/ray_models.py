"""Run this site's language models on a cluster node, and call them like our model server.

No Django.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import httpx

from evaluation.runs.ray_node import find_model_cache
from evaluation.runs.ray_runner import ClusterFailed, NodeClient
from serving.asgi import Application
from serving.errors import (
    LoadingError,
    MisconfiguredError,
    ServingError,
    TryLaterError,
)
from serving.registry import ModelRegistry
from serving.spec import PACKAGE_PREFIX, ModelSpec, find_weights
from tasks.targets.endpoints.addresses import AllowedHosts
from tasks.targets.endpoints.base import EndpointError, build_misconfigured_error
from tasks.targets.endpoints.transport import Headers, Reply, RetryPolicy, Transport

POLL_SECONDS = 0.2


class NodeTransport(Transport):
    """A transport that sends a model's calls to a cluster node instead of our model server.

    It sends no secrets.
    """

    def __init__(self, node: NodeClient, spec: ModelSpec) -> None:
        super().__init__()
        self._node, self._spec = node, spec

    @cached_property
    def _folders(self) -> dict[str, Path]:
        """Return the folder of the model's files; empty for a package, which nodes have installed.

        Raises EndpointError.
        """
        if self._spec.source.startswith(PACKAGE_PREFIX):
            return {}
        try:
            return {"folder": find_weights(self._spec)[0]}
        except MisconfiguredError as error:
            raise build_misconfigured_error(str(error)) from None
        except TryLaterError as error:
            raise EndpointError(str(error), "busy", retry_after=error.retry_after) from None

    def request(
        self,
        method: str,
        url: httpx.URL,
        *,
        seconds: float,
        max_bytes: int,
        allowed_hosts: AllowedHosts,
        secret: str | None,
        payload: Any,
        retry: RetryPolicy,
        headers: Headers = (),
        on_chunk: Callable[[bytes], None] | None = None,
    ) -> Reply:
        """Send a request; see `Transport.request`.

        Raises EndpointError, and NoEngine if the cluster is away.
        """
        body = b""
        if payload is not None:
            body = json.dumps(payload).encode()
        request = self._spec, method, url.path, body, seconds
        try:
            replies = list(self._node.do_errand(yield_reply, *request, **self._folders))
        except ClusterFailed as error:
            raise EndpointError(str(error), reason="down") from None
        return replies[-1]  # type: ignore[no-any-return]


# On the node.


def yield_reply(
    spec: ModelSpec, method: str, path: str, body: bytes, seconds: float, folder: Path | None = None
) -> Iterator[Reply]:
    """Yield the reply that our model server would give, once the model is loaded.

    folder: the model's files on this node; None for a package.
    """
    yield asyncio.run(
        _call_application(_load_application(spec, folder), method, path, body, seconds)
    )


@lru_cache(1)
def _load_application(spec: ModelSpec, folder: Path | None) -> Application:
    """Return a model server for one model. folder: the model's files on this node."""
    if folder:  # our machine has checked the files' paths; here they are a copy
        spec = replace(spec, source=str(folder), revision=None, below=None)
    registry = ModelRegistry(
        {spec.name: spec}.get, lambda: [spec.name], find_model_cache() / "serving"
    )
    while True:
        try:
            registry.get(spec.name)
        except LoadingError:
            time.sleep(POLL_SECONDS)
        except ServingError:
            break  # the request will get it as its reply
        else:
            break
    return Application(registry)


async def _call_application(
    application: Application, method: str, path: str, body: bytes, seconds: float
) -> Reply:
    """Call the application as an ASGI server does, and return its reply."""
    messages: list[Any] = []
    pending_messages = [{"type": "http.request", "body": body}]

    async def receive() -> Any:
        if pending_messages:
            return pending_messages.pop()
        return await asyncio.Event().wait()  # as if the client stayed connected

    async def send(message: Any) -> None:
        messages.append(message)

    headers = [(b"x-deadline-seconds", str(seconds).encode())]
    await application({"method": method, "path": path, "headers": headers}, receive, send)
    start_message, body_messages = messages[0], messages[1:]
    reply_headers = {
        name.decode().lower(): value.decode() for name, value in start_message["headers"]
    }
    return Reply(
        start_message["status"],
        reply_headers,
        b"".join(message["body"] for message in body_messages),
    )
