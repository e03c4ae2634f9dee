"""The endpoint wire format as a WSGI application."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .codecs import Answer
from .errors import (
    BadRequestError,
    ServingError,
    TooLargeError,
    TryLaterError,
    UnknownError,
    WrongMethodError,
)
from .registry import ModelRegistry

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 1024 * 1024
MAX_INPUTS = 64
DEADLINE_SECONDS = 30.0  # of callers that name none
STATUS = {
    200: "200 OK",
    400: "400 Bad Request",
    404: "404 Not Found",
    405: "405 Method Not Allowed",
    413: "413 Content Too Large",
    500: "500 Internal Server Error",
    503: "503 Service Unavailable",
    504: "504 Gateway Timeout",
}
Environ = Mapping[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class Application:
    """Routes: /health, /models, /models/<name>/{health,info,predict}."""

    def __init__(self, registry: ModelRegistry) -> None:
        self.registry = registry

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        status, headers = 200, [("Content-Type", "application/json")]
        try:
            answer = self._answer(environ)
        except ServingError as error:
            status, answer = error.status, _error(error)
            if isinstance(error, TryLaterError):
                headers.append(("Retry-After", str(error.retry_after)))
        except Exception:
            logger.exception("%s failed", environ.get("PATH_INFO"))
            failed = ServingError("The model failed on this input. The server's log says why.")
            status, answer = failed.status, _error(failed)
        body = json.dumps(answer, separators=(",", ":")).encode()
        start_response(STATUS[status], [*headers, ("Content-Length", str(len(body)))])
        return [body]

    def _answer(self, environ: Environ) -> dict[str, Any]:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path == "/health":
            _only(method, "GET")
            return {"status": "ok"}
        if path == "/models":
            _only(method, "GET")
            return {"models": sorted(self.registry.names())}
        match path.split("/"):
            case ["", "models", name, ("health" | "info" | "predict") as action]:
                _only(method, "POST" if action == "predict" else "GET")
            case _:
                raise UnknownError("There is no such route. A model's base is /models/<name>.")
        model = self.registry.get(name)
        if action == "health":
            return {"status": "ok"}
        if action == "info":
            return model.info
        started = time.monotonic()
        deadline = started + _deadline_seconds(environ)
        rows, single = _rows(_body(environ), model.fields)
        answers = [_said(answer) for answer in model.predict(rows, deadline=deadline)]
        said = answers[0] if single else {"predictions": answers}
        return said | {"seconds": time.monotonic() - started, "fingerprint": model.digest}


def _said(answer: Answer) -> dict[str, Any]:
    return {"output": answer.output, "prob": answer.prob}


def _error(error: ServingError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": str(error), "fields": error.fields}}


def _only(method: str, allowed: str) -> None:
    if method != allowed:
        raise WrongMethodError(f"Use {allowed}.")


def _deadline_seconds(environ: Environ) -> float:
    text = environ.get("HTTP_X_DEADLINE_SECONDS", DEADLINE_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise BadRequestError(f"X-Deadline-Seconds must be a number from 0 to 3600, not {text!r}.")
    return seconds


def _body(environ: Environ) -> Any:
    # Without a length the body is chunked, which only some servers undo and end by themselves.
    chunked = MAX_BODY_BYTES + 1 if environ.get("wsgi.input_terminated") else 0
    length = int(environ.get("CONTENT_LENGTH") or chunked)
    body = environ["wsgi.input"].read(min(length, MAX_BODY_BYTES + 1))
    if len(body) > MAX_BODY_BYTES:
        raise TooLargeError(f"The body is larger than {MAX_BODY_BYTES} bytes. Send fewer inputs.")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"The body is not JSON: {error}.") from None


def _rows(body: Any, fields: tuple[str, ...]) -> tuple[list[dict[str, str]], bool]:
    """The inputs and whether it is one input without a list. Raises BadRequestError."""
    inputs = body.get("inputs") if isinstance(body, dict) else None
    if isinstance(inputs, dict):
        return [_row(inputs, fields, "")], True
    if not isinstance(inputs, list) or not inputs:
        message = "must be an object of fields, or a list of such objects that is not empty."
        raise BadRequestError(f"inputs {message}", fields={"inputs": message})
    if len(inputs) > MAX_INPUTS:
        raise TooLargeError(f"{len(inputs)} inputs at once; send at most {MAX_INPUTS}.")
    return [_row(row, fields, f"inputs[{n}].") for n, row in enumerate(inputs)], False


def _row(row: Any, fields: tuple[str, ...], prefix: str) -> dict[str, str]:
    """An input with exactly the model's fields, all strings."""
    if not isinstance(row, dict):
        message = "must be an object of fields."
        raise BadRequestError(f"{prefix[:-1]} {message}", fields={prefix[:-1]: message})
    wrong = {field: "is missing." for field in fields if field not in row}
    for field, value in row.items():
        if field not in fields:
            wrong[field] = f"is not a field of this model; it takes {', '.join(fields)}."
        elif not isinstance(value, str):
            wrong[field] = "must be a string."
        elif any("\ud800" <= character <= "\udfff" for character in value):
            wrong[field] = "holds half of a surrogate pair, which is no character."
    if wrong:
        named = {prefix + field: message for field, message in wrong.items()}
        raise BadRequestError(
            " ".join(f"{field} {message}" for field, message in named.items()), fields=named
        )
    return row
