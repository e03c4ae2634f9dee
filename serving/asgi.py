"""The endpoint wire format as an ASGI application."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from typing import Any

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from core.telemetry.tracing import trace_answer
from serving.proofs import read_proven_task

from .bodies import (
    MAX_BODY_BYTES,
    MAX_PICTURE_BODY_BYTES,
    Message,
    Receive,
    Send,
    check_method,
    check_size,
    parse_json,
    read_body,
    read_deadline_seconds,
)
from .codecs import Answer
from .errors import (
    BadRequestError,
    DeadlineError,
    ForbiddenError,
    NotFoundError,
    ServingError,
    TooLargeError,
    TryLaterError,
    build_wrong_field_error,
)
from .generation.replies import build_openai_error
from .generation.routes import OpenAIRoutes
from .registry import ModelRegistry, ServedModel

logger = logging.getLogger(__name__)

MAX_INLINE_BODY_BYTES = 8 * 1024  # longer ones are read in a thread, so that they hold up nobody
MAX_INPUTS = 64
METRICS_TYPE = CONTENT_TYPE_LATEST.encode()


class Application:
    """An ASGI application with the model server's routes.

    The routes are /health, /metrics, /models, /models/<name>/{health,info,predict}, and OpenAI's
    below /v1. The event loop reads requests and tokenizes texts; the registry's own threads run the
    models and decode their answers. keys: the site's keys, one of which must have signed each call;
    empty if anybody may call.
    """

    def __init__(self, registry: ModelRegistry, keys: Sequence[bytes] = ()) -> None:
        self.registry, self._keys = registry, keys
        self._openai = OpenAIRoutes(registry)
        self.running_count = 0
        """The number of requests that have not been answered yet."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.running_count += 1
        try:
            await self._handle_request(scope, receive, send)
        finally:
            self.running_count -= 1

    async def _handle_request(self, scope: Message, receive: Receive, send: Send) -> None:
        match scope["path"]:
            case "/metrics":
                await _send_response(
                    send, 200, [(b"Content-Type", METRICS_TYPE)], generate_latest()
                )
            case "/health":  # asked all the time, of no trace
                await self._send_answer(scope, receive, send)
            case path:
                with trace_answer(f"{scope['method']} {path}", scope["headers"]):
                    await self._send_answer(scope, receive, send)

    async def _send_answer(self, scope: Message, receive: Receive, send: Send) -> None:
        status, headers = 200, [(b"Content-Type", b"application/json")]
        build_error = build_openai_error if scope["path"].startswith("/v1/") else _build_error
        try:
            answer = await self._build_answer(scope, receive)
        except ServingError as error:
            status, answer = error.status, build_error(error)
            if isinstance(error, TryLaterError):
                headers.append((b"Retry-After", b"%d" % error.retry_after))
        except Exception:
            logger.exception("%s failed", scope["path"])
            internal_error = ServingError(
                "The model failed on this input. The server's log says why."
            )
            status, answer = internal_error.status, build_error(internal_error)
        if not isinstance(answer, dict):
            await _send_stream(answer, send)
            return
        await _send_response(send, status, headers, orjson.dumps(answer))

    async def _build_answer(
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
            return await self._openai.answer_request(
                scope, body, receive, self._find_calling_task(scope)
            )
        if path == "/models":
            check_method(method, "GET")
            names = await asyncio.to_thread(
                self.registry.list_known_names, self._find_calling_task(scope)
            )
            return {"models": names}
        match path.split("/"):
            case ["", "models", name, ("health" | "info" | "predict") as action]:
                check_method(method, "POST" if action == "predict" else "GET")
            case _:
                raise NotFoundError("This route doesn't exist. A model's base is /models/<name>.")
        # Programs that wait for a model have no proof; its health tells no more than its name.
        task = None if action == "health" else self._find_calling_task(scope)
        model = self.registry.find_recent(name, task)
        if model is None:  # a thread, because the database may be asked
            model = await asyncio.to_thread(self.registry.get, name, task)
        if action == "health":
            return {"status": "ok"}
        if action == "info":
            return model.info
        if not isinstance(model, ServedModel):
            raise BadRequestError(f"{name} writes texts. Ask it at /v1/chat/completions.")
        # Only now is it known whether the model reads pictures, whose bodies are larger.
        max_bytes = MAX_PICTURE_BODY_BYTES if model.codec.pictures else MAX_BODY_BYTES
        check_size(body, max_bytes)
        deadline = started_at + read_deadline_seconds(scope)
        answers, is_single = await _predict_answers(model, body, deadline)
        if is_single:
            reply = _build_reply(answers[0])
        else:
            reply = {"predictions": [_build_reply(answer) for answer in answers]}
        return reply | {"seconds": time.monotonic() - started_at, "fingerprint": model.digest}

    def _find_calling_task(self, scope: Message) -> int | None:
        """Return the id of the task for which a call is made; None if anybody may call.

        Raises ForbiddenError.
        """
        if not self._keys:
            return None
        task = read_proven_task(self._keys, scope["headers"])
        if task is None:
            logger.warning("%s: no proof by this site's SECRET_KEY", scope["path"])
            raise ForbiddenError("Only the site of this server may ask its models.")
        return task


async def _predict_answers(
    model: ServedModel, body: bytearray, deadline: float
) -> tuple[list[Answer], bool]:
    """Return the answers, and whether the call had a single input. Raises ServingError.

    deadline: a time of time.monotonic().
    """

    def submit() -> tuple[Future[list[Answer]], bool]:
        rows, is_single = _read_rows(parse_json(body), model.fields)
        return model.submit(rows, deadline=deadline), is_single

    try:
        async with asyncio.timeout(deadline - time.monotonic()):
            # In a thread, a long body holds up none of the other callers.
            is_long = len(body) > MAX_INLINE_BODY_BYTES
            future, is_single = await asyncio.to_thread(submit) if is_long else submit()
            return await asyncio.wrap_future(future), is_single
    except TimeoutError:
        raise DeadlineError("The model did not answer within the deadline.") from None


async def _send_response(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    headers.append((b"Content-Length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_stream(events: AsyncIterator[bytes], send: Send) -> None:
    headers = [(b"Content-Type", b"text/event-stream"), (b"Cache-Control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for event in events:
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _build_reply(answer: Answer) -> dict[str, Any]:
    return {"output": answer.output, "prob": answer.prob}


def _build_error(error: ServingError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": str(error), "fields": error.fields}}


def _read_rows(body: Any, fields: tuple[str, ...]) -> tuple[list[dict[str, str]], bool]:
    """Return the inputs, and whether the body is one input, not a list.

    Raises BadRequestError, and TooLargeError for more than MAX_INPUTS inputs.
    """
    inputs = body.get("inputs") if isinstance(body, dict) else None
    if isinstance(inputs, dict):
        return [_read_row(inputs, fields, "")], True
    if not isinstance(inputs, list) or not inputs:
        raise build_wrong_field_error(
            "inputs", "must be an object of fields, or a list of such objects that is not empty."
        )
    # One call must not fill the queue for all others.
    if len(inputs) > MAX_INPUTS:
        raise TooLargeError(f"{len(inputs)} inputs at once; send at most {MAX_INPUTS}.")
    return [_read_row(row, fields, f"inputs[{n}].") for n, row in enumerate(inputs)], False


def _read_row(row: Any, fields: tuple[str, ...], prefix: str) -> dict[str, str]:
    """Return an input that has exactly the model's fields, all strings. Raises BadRequestError."""
    if not isinstance(row, dict):
        raise build_wrong_field_error(prefix[:-1], "must be an object of fields.")
    problem_by_field = {field: "is missing." for field in fields if field not in row}
    for field, value in row.items():
        if field not in fields:
            problem_by_field[field] = f"is not a field of this model; it takes {', '.join(fields)}."
        elif not isinstance(value, str):
            problem_by_field[field] = "must be a string."
    if problem_by_field:
        messages_by_path = {prefix + field: message for field, message in problem_by_field.items()}
        raise BadRequestError(
            " ".join(f"{field} {message}" for field, message in messages_by_path.items()),
            fields=messages_by_path,
        )
    return row
