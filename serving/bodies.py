"""Read requests to the model server: method, body, deadline."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from core.files.damage import describe_damage

from .errors import BadRequestError, TooLargeError, WrongMethodError

MAX_BODY_BYTES = 1024 * 1024
MAX_PICTURE_BODY_BYTES = 16 * 1024 * 1024  # of models that look at pictures
DEFAULT_DEADLINE_SECONDS = 30.0  # of callers that name none
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def check_method(method: str, allowed_method: str) -> None:
    """Raise WrongMethodError for a method other than `allowed_method`."""
    if method != allowed_method:
        raise WrongMethodError(f"Use {allowed_method}.")


def read_deadline_seconds(scope: Message, default: float = DEFAULT_DEADLINE_SECONDS) -> float:
    """Return how many seconds the caller waits for the answer, from X-Deadline-Seconds.

    default: the number without this header.

    Raises BadRequestError.
    """
    value = dict(scope["headers"]).get(b"x-deadline-seconds")
    if value is None:
        return default
    text = value.decode("latin-1")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise BadRequestError(f"X-Deadline-Seconds must be a number from 0 to 3600, not {text!r}.")
    return seconds


async def read_body(receive: Receive) -> bytearray:
    """Read the body. Raises TooLargeError over the limit, BadRequestError if it is incomplete.

    Bytes over the limit are read and discarded, so that the sender gets a response.
    """
    body, size, is_more = bytearray(), 0, True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequestError("The body did not come to its end.")
        piece = message.get("body", b"")
        size += len(piece)
        if size <= MAX_PICTURE_BODY_BYTES:
            body += piece
        is_more = message.get("more_body", False)
    if size > MAX_PICTURE_BODY_BYTES:
        raise _build_too_large_error(MAX_PICTURE_BODY_BYTES)
    return body


def check_size(body: bytearray, max_bytes: int) -> None:
    """Raise TooLargeError for a body of more than `max_bytes` bytes."""
    if len(body) > max_bytes:
        raise _build_too_large_error(max_bytes)


def _build_too_large_error(max_bytes: int) -> TooLargeError:
    return TooLargeError(f"The body is larger than {max_bytes} bytes. Send fewer inputs.")


def parse_json(body: bytearray) -> Any:
    """Parse the JSON of a body. Raises BadRequestError."""
    try:
        return orjson.loads(body)  # refuses halves of surrogate pairs, which are no characters
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"The body is not JSON: {describe_damage(error)}.") from None
