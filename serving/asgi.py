"""The endpoint wire format as an ASGI application."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from typing import Any

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from core.telemetry.tracing import answering
from serving.proofs import proven_task

from .bodies import (
    MAX_BODY_BYTES,
    MAX_PICTURE_BODY_BYTES,
    Message,
    Receive,
    Send,
    check_method,
    check_size,
    deadline_seconds,
    parse_json,
    read_body,
)
from .codecs import Answer
from .errors import (
    BadRequestError,
    DeadlineError,
    ForbiddenError,
    ServingError,
    TooLargeError,
    TryLaterError,
    UnknownError,
    wrong_field,
)
from .generation.replies import as_openai_error
from .generation.routes import OpenAIRoutes
from .registry import ModelRegistry, ServedModel

logger = logging.getLogger(__name__)

LONG_BODY_BYTES = 8 * 1024  # longer ones are read in a thread, so that they hold up nobody
MAX_INPUTS = 64
METRICS_TYPE = CONTENT_TYPE_LATEST.encode()


class Application:
    """The ASGI application, with the routes /health, /metrics, /models,
    /models/<name>/{health,info,predict}, and OpenAI's below /v1.

    The event loop reads requests and tokenizes texts; the registry's own threads run the models
    and decode their answers. keys: the site's keys, with which each call must be signed; empty if
    anybody may call.
    """

    def __init__(self, registry: ModelRegistry, keys: Sequence[bytes] = ()) -> None:
        self.registry, self._keys = registry, keys
        self._openai = OpenAIRoutes(registry)
        self.running = 0
        """Requests that are not answered yet."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.running += 1
        try:
            await self._respond(scope, receive, send)
        finally:
            self.running -= 1

    async def _respond(self, scope: Message, receive: Receive, send: Send) -> None:
        match scope["path"]:
            case "/metrics":
                await _send(send, 200, [(b"Content-Type", METRICS_TYPE)], generate_latest())
            case "/health":  # asked all the time, of no trace
                await self._respond_to(scope, receive, send)
            case path:
                with answering(f"{scope['method']} {path}", scope["headers"]):
                    await self._respond_to(scope, receive, send)

    async def _respond_to(self, scope: Message, receive: Receive, send: Send) -> None:
        status, headers = 200, [(b"Content-Type", b"application/json")]
        as_error = as_openai_error if scope["path"].startswith("/v1/") else _error
        try:
            answer = await self._answer(scope, receive)
        except ServingError as error:
            status, answer = error.status, as_error(error)
            if isinstance(error, TryLaterError):
                headers.append((b"Retry-After", b"%d" % error.retry_after))
        except Exception:
            logger.exception("%s failed", scope["path"])
            failed = ServingError("The model failed on this input. The server's log says why.")
            status, answer = failed.status, as_error(failed)
        if not isinstance(answer, dict):
            await _stream(answer, send)
            return
        await _send(send, status, headers, orjson.dumps(answer))

    async def _answer(
        self, scope: Message, receive: Receive
    ) -> dict[str, Any] | AsyncIterator[bytes]:
        path, method, started_at = scope["path"], scope["method"], time.monotonic()
        # Read whatever the answer is: with an unread body, the connection would have to be closed.
        body = await read_body(receive)
        # Answered without proof and without a trace: supervisors ask it all the time.
        if path == "/health":
            check_method(method, "GET")
            return {"status": "ok"}
        if path.startswith("/v1/"):
            return await self._openai.answer(scope, body, receive, self._asker(scope))
        if path == "/models":
            check_method(method, "GET")
            names = await asyncio.to_thread(self.registry.known_names, self._asker(scope))
            return {"models": names}
        match path.split("/"):
            case ["", "models", name, ("health" | "info" | "predict") as action]:
                check_method(method, "POST" if action == "predict" else "GET")
            case _:
                raise UnknownError("There is no such route. A model's base is /models/<name>.")
        # Programs that wait for a model have no proof; its health tells no more than its name.
        asker = None if action == "health" else self._asker(scope)
        model = self.registry.recent(name, asker)
        if model is None:  # a thread, because the database may be asked
            model = await asyncio.to_thread(self.registry.get, name, asker)
        if action == "health":
            return {"status": "ok"}
        if action == "info":
            return model.info
        if not isinstance(model, ServedModel):
            raise BadRequestError(f"{name} writes texts. Ask it at /v1/chat/completions.")
        # Only now is it known whether the model reads pictures, whose bodies are larger.
        most = MAX_PICTURE_BODY_BYTES if model.codec.pictures else MAX_BODY_BYTES
        check_size(body, most)
        deadline = started_at + deadline_seconds(scope)
        answers, single = await _predicted(model, body, deadline)
        if single:
            reply = _reply(answers[0])
        else:
            reply = {"predictions": [_reply(answer) for answer in answers]}
        return reply | {"seconds": time.monotonic() - started_at, "fingerprint": model.digest}

    def _asker(self, scope: Message) -> int | None:
        """Return the id of the task that a call is made for; None if anybody may call.

        Raises ForbiddenError.
        """
        if not self._keys:
            return None
        task = proven_task(self._keys, scope["headers"])
        if task is None:
            logger.warning("%s: no proof by this site's SECRET_KEY", scope["path"])
            raise ForbiddenError("Only the site of this server may ask its models.")
        return task


async def _predicted(
    model: ServedModel, body: bytearray, deadline: float
) -> tuple[list[Answer], bool]:
    """Return the answers, and whether the call had a single input. Raises ServingError."""

    def submit() -> tuple[Future[list[Answer]], bool]:
        rows, is_single = _rows(parse_json(body), model.fields)
        return model.submit(rows, deadline=deadline), is_single

    try:
        async with asyncio.timeout(deadline - time.monotonic()):
            # In a thread, a long body holds up none of the other callers.
            is_long = len(body) > LONG_BODY_BYTES
            future, is_single = await asyncio.to_thread(submit) if is_long else submit()
            return await asyncio.wrap_future(future), is_single
    except TimeoutError:
        raise DeadlineError("The model did not answer within the deadline.") from None


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers.append((b"Content-Length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _stream(events: AsyncIterator[bytes], send: Send) -> None:
    headers = [(b"Content-Type", b"text/event-stream"), (b"Cache-Control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for event in events:
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _reply(answer: Answer) -> dict[str, Any]:
    return {"output": answer.output, "prob": answer.prob}


def _error(error: ServingError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": str(error), "fields": error.fields}}


def _rows(body: Any, fields: tuple[str, ...]) -> tuple[list[dict[str, str]], bool]:
    """Return the inputs, and whether the body is one input, not a list. Raises BadRequestError."""
    inputs = body.get("inputs") if isinstance(body, dict) else None
    if isinstance(inputs, dict):
        return [_row(inputs, fields, "")], True
    if not isinstance(inputs, list) or not inputs:
        raise wrong_field(
            "inputs", "must be an object of fields, or a list of such objects that is not empty."
        )
    # One call must not fill the queue for all others.
    if len(inputs) > MAX_INPUTS:
        raise TooLargeError(f"{len(inputs)} inputs at once; send at most {MAX_INPUTS}.")
    return [_row(row, fields, f"inputs[{n}].") for n, row in enumerate(inputs)], False


def _row(row: Any, fields: tuple[str, ...], prefix: str) -> dict[str, str]:
    """Return an input that has exactly the model's fields, all strings. Raises BadRequestError."""
    if not isinstance(row, dict):
        raise wrong_field(prefix[:-1], "must be an object of fields.")
    problem_by_field = {field: "is missing." for field in fields if field not in row}
    for field, value in row.items():
        if field not in fields:
            problem_by_field[field] = f"is not a field of this model; it takes {', '.join(fields)}."
        elif not isinstance(value, str):
            problem_by_field[field] = "must be a string."
    if problem_by_field:
        named = {prefix + field: message for field, message in problem_by_field.items()}
        raise BadRequestError(
            " ".join(f"{field} {message}" for field, message in named.items()), fields=named
        )
    return row
