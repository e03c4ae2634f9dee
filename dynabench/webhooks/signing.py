"""Signatures of the Standard Webhooks specification (github.com/standard-webhooks)."""

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"


def create_secret() -> str:
    """Return 256 random bits in the format of the Standard Webhooks specification."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def compute_signature(secret: str, *, id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header `webhook-signature`, version 1.

    It is an HMAC-SHA256 over id, timestamp and body. timestamp: in seconds.
    """
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.digest(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode()
