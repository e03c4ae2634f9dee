"""Store a guest's practice text in their browser until they have an account.

The text travels in the form of the verdict and then in a cookie, encrypted. The server stores
nothing.
"""

import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from json import dumps, loads
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from core.data.encryption import UnreadableSecret, decrypt, encrypt

COOKIE_NAME = "kept-text"
KEEP_TIME = timedelta(days=3)
"""How long a text is kept: as long as the mail that confirms an account is valid."""
MAX_COOKIE_BYTES = 3800
"""The maximum size of the sealed text. Browsers drop cookies of over 4096 bytes in all."""


@dataclass(frozen=True)
class GuestText:
    """A text that a guest wrote in practice.

    task: the task's code. goal: the goal that the text was written for. inputs: values by field.
    """

    task: str
    goal: str
    inputs: Mapping[str, Any]


def seal_text(text: GuestText) -> str:
    """Return the text encrypted for a cookie; "" if it is too long."""
    expires_at = (timezone.now() + KEEP_TIME).timestamp()
    # Before it is encrypted: afterwards nothing gets smaller.
    compressed = zlib.compress(dumps([expires_at, asdict(text)], ensure_ascii=False).encode())
    sealed = encrypt(b85encode(compressed).decode())
    return sealed if len(sealed) <= MAX_COOKIE_BYTES else ""


def unseal_text(sealed_text: str) -> GuestText | None:
    """Return the text that `seal_text` encrypted; None if it is invalid or older than KEEP_TIME."""
    try:
        expires_at, values = loads(zlib.decompress(b85decode(decrypt(sealed_text))))
        text = GuestText(**values)
    except (UnreadableSecret, TypeError, ValueError, zlib.error):
        return None
    return text if timezone.now().timestamp() < expires_at else None


def store_sealed_text(response: HttpResponse, sealed_text: str) -> None:
    """Store a sealed text in a browser cookie."""
    response.set_cookie(
        COOKIE_NAME,
        sealed_text,
        max_age=KEEP_TIME,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def get_guest_text(request: HttpRequest) -> GuestText | None:
    """Return the text in the browser's cookie, or None."""
    sealed = request.COOKIES.get(COOKIE_NAME)
    return unseal_text(sealed) if sealed else None


def delete_guest_text(response: HttpResponse) -> None:
    """Delete the text from the browser."""
    response.delete_cookie(COOKIE_NAME)
