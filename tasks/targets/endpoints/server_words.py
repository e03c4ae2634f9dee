"""Read a server's message about a failure, and clean it for people. Pure, no Django.

Servers put the message into `error`, `error.message`, `detail`, `message`, a plain text or a page.
They may repeat secrets from the request, or send characters that change how a page or a terminal
looks.
"""

import html
import json
import re
from collections.abc import Mapping
from typing import Any

MAX_QUOTE_CHARS = 200
MAX_READ_CHARS = 5_000
"""The number of characters of a failed response that are searched for its message."""
HIDDEN_TEXT = "[secret]"
MIN_SECRET_CHARS = 8
"""The minimum length of a part of a secret that is masked."""
_MESSAGE_KEYS = ("message", "detail", "msg", "error", "title", "code", "type")
_KEPT_INVISIBLE_CHARACTERS = "\u200c\u200d"
"""Joiners, which some scripts need between letters."""
_VALUE = r"(?=\S*[\d*])[\w.~+/=*-]{6,}"
_SECRET_PATTERN = re.compile(
    rf"(?i)\b((?:bearer|basic)\s+){_VALUE}"
    r"|\b((?:x-)?(?:api[ _-]?key|access[ _-]?token|token|secret|password|authorization)"
    rf"(?:\s+provided)?[\"']?\s*[:=]\s*[\"']?)(?!bearer\b|basic\b){_VALUE}"
    rf"|\b(?:sk|pk|hf|key)[-_]{_VALUE}"
)
"""A pattern for what looks like a key: six characters with a digit or a star.

Servers often repeat parts of keys.
"""
_SETTINGS_PATTERN = re.compile(
    r"(?i)api[ _-]?key|unauthori[sz]ed|(?:invalid|unknown|unsupported|no such) model"
    r"|model.{0,120}(?:not found|not exist|is not loaded|not available|not ready)"
    r"|inference input|(?:input|output) tensor|tensor.{0,40}(?:not found|expected)"
)
_PAGE_PATTERN = re.compile(r"(?is)^\s*(?:<!doctype|<html|<head|<\?xml)")
_UNSEEN_PATTERN = re.compile(r"(?is)<(script|style)\b.*?</\1>|<!--.*?-->|<[^>]*>")
_BODY_PATTERN = re.compile(r"(?is)<body\b[^>]*>(.*?)(?:</body>|$)")
_TITLE_PATTERN = re.compile(r"(?is)<title\b[^>]*>(.*?)(?:</title>|$)")
_WORD_PATTERN = re.compile(r"[\w.*-]+")


def read_message(body: bytes) -> str:
    """Return the cleaned message of a failed response, or ""."""
    return clean_message(extract_message(read_error(body)))


def read_error(body: bytes) -> Any:
    """Return the error in a failed response: from its JSON, otherwise the visible text."""
    text = body.decode("utf-8", errors="replace")
    try:
        return extract_error(json.loads(text))
    except (ValueError, RecursionError):
        return _extract_visible_text(text)


def extract_error(body: Any) -> Any:
    """Return the error in a failed response's parsed body, as a text or an object.

    Reads OpenAI's `error`, FastAPI's `detail`, then `message` or `title`. A body that is a text is
    the error. Of a list, the first item is read. Returns "" if there is no error.
    """
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        if isinstance(body, str):
            return body
        return ""
    detail = body.get("detail")
    if isinstance(detail, list) and detail:
        detail = detail[0]
    return body.get("error") or detail or body.get("message") or body.get("title") or ""


def extract_message(error: Any) -> str:
    """Return the message of an `error`, which is a text or an object with one."""
    if isinstance(error, str):
        return error
    if isinstance(error, Mapping):
        for name in _MESSAGE_KEYS:
            if message := extract_message(error.get(name)):
                return message
    return ""


def clean_message(message: str) -> str:
    """Return a server's message for quoting within ours: one line, shortened, without keys."""
    # Cut first: the patterns below take quadratic time of what a server may send.
    message = message[:MAX_READ_CHARS]
    visible_text = ""
    for character in message:
        visible_text += (
            character if character.isprintable() or character in _KEPT_INVISIBLE_CHARACTERS else " "
        )
    line = " ".join(visible_text.split())
    return mask_keys(line)[:MAX_QUOTE_CHARS].rstrip()


def mask_keys(text: str) -> str:
    """Return the text with anything that looks like a key replaced with [secret]."""
    return _SECRET_PATTERN.sub(lambda match: (match[1] or match[2] or "") + HIDDEN_TEXT, text)


def mask_copies(secret: str | None, text: str) -> str:
    """Return the text with a secret, or a long prefix or suffix of it, replaced with [secret].

    Servers that mask the middle of a key show both its ends.
    """
    if not secret:
        return text
    text = text.replace(secret, HIDDEN_TEXT)
    # Servers often quote a key as "sk-abcd…wxyz".
    secret_ends = (secret[:MIN_SECRET_CHARS], secret[-MIN_SECRET_CHARS:])
    if len(secret) < 2 * MIN_SECRET_CHARS or not any(end in text for end in secret_ends):
        return text
    return _WORD_PATTERN.sub(
        lambda word: HIDDEN_TEXT if any(end in word[0] for end in secret_ends) else word[0], text
    )


def concerns_settings(message: str) -> bool:
    """Return whether a refusal is about the request's settings, not about one text."""
    return bool(_SETTINGS_PATTERN.search(message))


def _extract_visible_text(text: str) -> str:
    """Return the text that a browser would show for a body that is not JSON."""
    text = text[:MAX_READ_CHARS]  # patterns take quadratic time of what a server may send
    if not _PAGE_PATTERN.match(text):
        return text
    for pattern in (_BODY_PATTERN, _TITLE_PATTERN):
        match = pattern.search(text)
        visible_text = ""
        if match:
            visible_text = html.unescape(_UNSEEN_PATTERN.sub(" ", match[1])).strip()
        if visible_text:
            return visible_text
    return ""
