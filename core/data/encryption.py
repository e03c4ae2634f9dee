"""Secrets that must be used again are stored encrypted, with a key that SECRET_KEY gives."""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.encoding import force_bytes


class Unreadable(Exception):
    """Raised for a stored secret that no known SECRET_KEY decrypts."""


def derived_keys(purpose: str) -> list[bytes]:
    """Return 32-byte keys for one purpose, from SECRET_KEY and each of SECRET_KEY_FALLBACKS."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    # A key that leaks from one purpose must not open what another one protects.
    prefix = f"dynabench.{purpose}:".encode()
    return [hashlib.sha256(prefix + force_bytes(key)).digest() for key in keys]


def _keys() -> MultiFernet:
    """Return the encryption keys, the current one first, then fallbacks for decryption."""
    digests = derived_keys("encryption")
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])


def encrypt(text: str) -> str:
    """Encrypt a text with SECRET_KEY. An empty text stays empty."""
    return _keys().encrypt(text.encode()).decode() if text else ""


def rotated(token: str) -> str:
    """Return the token encrypted with the current key. Raises Unreadable."""
    try:
        return _keys().rotate(token.encode()).decode()
    except InvalidToken:
        raise Unreadable("No known SECRET_KEY reads it.") from None


def decrypt(token: str) -> str:
    """Decrypt a text. Raises Unreadable."""
    try:
        return _keys().decrypt(token.encode()).decode() if token else ""
    except InvalidToken:
        raise Unreadable("SECRET_KEY is not the one that it was encrypted with.") from None
