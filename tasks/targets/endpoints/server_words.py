"""Read what a server said of a failure, and clean it for people. Pure, no Django.

Servers put their words into `error`, `error.message`, `detail`, `message`, a plain text or a page.
Whatever they repeat of how they were asked may be a secret, and whatever they send may hold signs
that change how a page or a terminal looks.
"""

import html
import json
import re
from collections.abc import Mapping
from typing import Any

MAX_QUOTE_CHARS = 200
MAX_READ_CHARS = 5_000
"""Characters of a failed response in which its words are looked for."""
HIDDEN_TEXT = "[secret]"
MIN_SECRET_CHARS = 8
"""Characters of a secret that are no word by themselves."""
_NAMES = ("message", "detail", "msg", "error", "title", "code", "type")
_KEPT_INVISIBLE = "\u200c\u200d"
"""Joiners, which belong to the letters of some scripts."""
_VALUE = r"(?=\S*[\d*])[\w.~+/=*-]{6,}"
_SECRETS = re.compile(
    rf"(?i)\b((?:bearer|basic)\s+){_VALUE}"
    r"|\b((?:x-)?(?:api[ _-]?key|access[ _-]?token|token|secret|password|authorization)"
    rf"(?:\s+provided)?[\"']?\s*[:=]\s*[\"']?)(?!bearer\b|basic\b){_VALUE}"
    rf"|\b(?:sk|pk|hf|key)[-_]{_VALUE}"
)
"""What looks like a key, of which servers repeat parts: six signs with a digit or a star."""
_SETTINGS = re.compile(
    r"(?i)api[ _-]?key|unauthori[sz]ed|(?:invalid|unknown|unsupported|no such) model"
    r"|model.{0,120}(?:not found|not exist|is not loaded|not available|not ready)"
    r"|inference input|(?:input|output) tensor|tensor.{0,40}(?:not found|expected)"
)
_PAGE = re.compile(r"(?is)^\s*(?:<!doctype|<html|<head|<\?xml)")
_UNSEEN = re.compile(r"(?is)<(script|style)\b.*?</\1>|<!--.*?-->|<[^>]*>")
_BODY = re.compile(r"(?is)<body\b[^>]*>(.*?)(?:</body>|$)")
_TITLE = re.compile(r"(?is)<title\b[^>]*>(.*?)(?:</title>|$)")
_WORD = re.compile(r"[\w.*-]+")


def read_message(body: bytes) -> str:
    """Return the cleaned message of a failed response, or ""."""
    return clean_message(extract_message(read_error(body)))


def read_error(body: bytes) -> Any:
    """Return the error in a failed response: `extract_error` of JSON, a page's visible text."""
    text = body.decode("utf-8", errors="replace")
    try:
        return extract_error(json.loads(text))
    except (ValueError, RecursionError):
        return _extract_visible_text(text)


def extract_error(body: Any) -> Any:
    """Return the error in a failed response's body: OpenAI's `error`, or FastAPI's `detail`."""
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
        for name in _NAMES:
            if words := extract_message(error.get(name)):
                return words
    return ""


def clean_message(words: str) -> str:
    """Return a server's message as the end of ours: one line, shortened, without keys."""
    # Cut first: the patterns below take quadratic time of what a server may send.
    words = words[:MAX_READ_CHARS]
    visible = ""
    for sign in words:
        visible += sign if sign.isprintable() or sign in _KEPT_INVISIBLE else " "
    line = " ".join(visible.split())
    return mask_keys(line)[:MAX_QUOTE_CHARS].rstrip()


def mask_keys(text: str) -> str:
    """Return the text with [secret] in place of anything that looks like a key."""
    return _SECRETS.sub(lambda match: (match[1] or match[2] or "") + HIDDEN_TEXT, text)


def mask_copies(secret: str | None, text: str) -> str:
    """Return the text with [secret] in place of a secret, or of a long prefix or suffix of it.

    Servers that mask the middle of a key leave both.
    """
    if not secret:
        return text
    text = text.replace(secret, HIDDEN_TEXT)
    # Servers often quote a key as "sk-abcd…wxyz".
    secret_ends = (secret[:MIN_SECRET_CHARS], secret[-MIN_SECRET_CHARS:])
    if len(secret) < 2 * MIN_SECRET_CHARS or not any(end in text for end in secret_ends):
        return text
    return _WORD.sub(
        lambda word: HIDDEN_TEXT if any(end in word[0] for end in secret_ends) else word[0], text
    )


def concerns_settings(words: str) -> bool:
    """Return whether a refusal is about the request's settings rather than about one text."""
    return bool(_SETTINGS.search(words))


def _extract_visible_text(text: str) -> str:
    """Return the text that a browser would show for a body that is not JSON."""
    text = text[:MAX_READ_CHARS]  # patterns take quadratic time of what a server may send
    if not _PAGE.match(text):
        return text
    for pattern in (_BODY, _TITLE):
        match = pattern.search(text)
        visible = ""
        if match:
            visible = html.unescape(_UNSEEN.sub(" ", match[1])).strip()
        if visible:
            return visible
    return ""
