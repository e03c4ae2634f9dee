"""What a guest wrote in practice, kept by their browser alone until they have an account.

It travels in the form of the verdict and then in a cookie, encrypted, and is stored nowhere here.
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

from core.data.encryption import Unreadable, decrypt, encrypt

COOKIE = "kept-text"
KEPT = timedelta(days=3)
"""As long as a mail with which an account is confirmed."""
LARGEST = 3800
"""Bytes: browsers drop a cookie of more than 4096 with its name and its attributes."""


@dataclass(frozen=True)
class KeptText:
    """A guest's text: its inputs by field, the task, and the goal that it was written for."""

    task: str
    goal: str
    inputs: Mapping[str, Any]


def seal(text: KeptText) -> str:
    """Return the text encrypted for a cookie; "" if it is too long."""
    until = (timezone.now() + KEPT).timestamp()
    # Before it is encrypted: afterwards nothing gets smaller.
    packed = zlib.compress(dumps([until, asdict(text)], ensure_ascii=False).encode())
    sealed = encrypt(b85encode(packed).decode())
    return sealed if len(sealed) <= LARGEST else ""


def unseal(sealed_text: str) -> KeptText | None:
    """Return the text that `seal` encrypted; None for anything else, or if older than KEPT."""
    try:
        until, values = loads(zlib.decompress(b85decode(decrypt(sealed_text))))
        text = KeptText(**values)
    except (Unreadable, TypeError, ValueError, zlib.error):
        return None
    return text if timezone.now().timestamp() < until else None


def keep_text(response: HttpResponse, sealed_text: str) -> None:
    """Store a sealed text in the browser's cookie."""
    response.set_cookie(
        COOKIE,
        sealed_text,
        max_age=KEPT,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def kept_text(request: HttpRequest) -> KeptText | None:
    """Return the text in the browser's cookie, or None."""
    sealed = request.COOKIES.get(COOKIE)
    return unseal(sealed) if sealed else None


def forget_text(response: HttpResponse) -> None:
    """Delete the text from the browser."""
    response.delete_cookie(COOKIE)
