"""Encrypt secrets that must be used again, with a key derived from SECRET_KEY."""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.encoding import force_bytes


class UnreadableSecret(Exception):
    """Raised for a stored secret that no known SECRET_KEY decrypts."""


def derive_keys(purpose: str) -> list[bytes]:
    """Return 32-byte keys for one purpose, from SECRET_KEY and each of SECRET_KEY_FALLBACKS."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    # A key that leaks from one purpose must not open what another one protects.
    prefix = f"dynabench.{purpose}:".encode()
    return [hashlib.sha256(prefix + force_bytes(key)).digest() for key in keys]


def _load_keys() -> MultiFernet:
    """Return the encryption keys, the current one first, then fallbacks for decryption."""
    # MultiFernet encrypts with the first key and decrypts with any of them.
    digests = derive_keys("encryption")
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])


def encrypt(text: str) -> str:
    """Encrypt a text with SECRET_KEY. An empty text stays empty."""
    return _load_keys().encrypt(text.encode()).decode() if text else ""


def rotate_token(token: str) -> str:
    """Return the token, encrypted again with the current key. Raises UnreadableSecret."""
    try:
        return _load_keys().rotate(token.encode()).decode()
    except InvalidToken:
        raise UnreadableSecret("No known SECRET_KEY reads it.") from None


def decrypt(token: str) -> str:
    """Decrypt a text. An empty text stays empty. Raises UnreadableSecret."""
    try:
        return _load_keys().decrypt(token.encode()).decode() if token else ""
    except InvalidToken:
        raise UnreadableSecret("SECRET_KEY is not the one that it was encrypted with.") from None
