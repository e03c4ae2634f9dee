"""Sees each answer of the API in a test: of this process, and of others through httpx."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from django.core.handlers.base import BaseHandler
from django.http import HttpRequest

from tests.support.api_answers import BEFORE, problems_of

found: list[str] = []


@contextmanager
def watching() -> Iterator[None]:
    """Collect in `found` what answers have that the schema does not say."""
    get_response, send = BaseHandler.get_response, httpx.Client.send

    def answered(handler: BaseHandler, request: HttpRequest) -> Any:
        response = get_response(handler, request)
        body = None if response.streaming else response.content
        kind = response.headers.get("Content-Type", "")
        _note(request.method or "", request.path, response.status_code, kind, body)
        return response

    def sent(client: httpx.Client, request: httpx.Request, **how: Any) -> httpx.Response:
        response = send(client, request, **how)
        # Other transports are scripted, or ask the application in this process.
        if type(client._transport_for_url(request.url)) is httpx.HTTPTransport:
            body = None if how.get("stream") else response.content
            kind = response.headers.get("Content-Type", "")
            # Servers of tests run with DEBUG, and then a 500 is Django's own page.
            if response.status_code != 500 or not kind.startswith("text/html"):
                _note(request.method, request.url.path, response.status_code, kind, body)
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseHandler, "get_response", answered)
        patch.setattr(httpx.Client, "send", sent)
        yield


def _note(method: str, path: str, status: int, kind: str, body: bytes | None) -> None:
    if path.startswith(BEFORE):
        found.extend(problems_of(method, path, status, kind, body))
