"""Read the response of a chat model's server: a completion, or the kind of failure.

Servers that claim to be compatible differ: content is a text, a list of parts or null, reasoning
is in fields of several names, and an error may come with status 200. Pure, no Django.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tasks.targets.endpoints.answer_reader import split_thoughts
from tasks.targets.endpoints.answers import expect_object
from tasks.targets.endpoints.base import EndpointError, Reason, Usage, build_rubbish_error
from tasks.targets.endpoints.server_words import clean_message, extract_message

CUT_REASONS = ("length", "max_tokens", "model_length")
"""Finish reasons, in lower case, of answers that `max_tokens` cut off."""
FILTER_REASONS = (
    "content_filter",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "sensitive",
    "image_safety",
    "guardrail_intervened",
)
DECLINE_REASONS = ("refusal",)
FAILURE_REASONS = ("error", "abort", "aborted", "network_error", "insufficient_system_resource")
THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Fields of a message, and types of a part, that contain reasoning."""


class Completion(NamedTuple):
    """A model's text without its reasoning. is_cut: whether `max_tokens` cut it off."""

    text: str
    is_cut: bool


def read_completion(answer: Mapping[str, Any]) -> Completion:
    """Return the first choice of a server's response.

    Raises EndpointError with the reason `filtered`, `declined`, `unfinished` (`max_tokens` ended
    the reasoning), `empty` or `rubbish`, or the error that the response reports.
    """
    # 1. Some servers answer an error with status 200.
    choices = answer.get("choices")
    if answer.get("error") and not choices:
        raise build_reported_error(answer["error"], 200)
    if not isinstance(choices, list) or not choices:
        raise build_rubbish_error("The answer has no choices.")
    choice = expect_object(choices[0], "A choice")
    message = expect_object(choice.get("message"), "The message")
    finish_reason = str(choice.get("finish_reason") or "").lower()
    # 2. The end may tell that there is no answer: filtered, declined, failed.
    _check_finish(finish_reason, message, choice)
    # 3. Take the thoughts away. What is left is the answer.
    full_text = extract_text(message.get("content"))
    written_answer = split_thoughts(full_text)
    is_cut = finish_reason in CUT_REASONS
    if written_answer.text:
        return Completion(written_answer.text, is_cut)
    # 4. Nothing is left: say whether the limit, or the model itself, is the reason.
    if is_cut:
        raise EndpointError(
            "The model's thoughts did not end within 'max_tokens'. Allow more, or switch thinking "
            "off.",
            reason="unfinished",
        )
    raise EndpointError(_explain_empty_answer(message, written_answer.thoughts), reason="empty")


def _check_finish(
    finish_reason: str, message: Mapping[str, Any], choice: Mapping[str, Any]
) -> None:
    """Raise EndpointError if the finish reason or a refusal shows that there is no answer."""
    refusal = message.get("refusal") or _find_refusal(message.get("content"))
    if finish_reason in FILTER_REASONS:
        raise EndpointError("A content filter stopped the answer.", "filtered", is_permanent=True)
    if refusal or finish_reason in DECLINE_REASONS:
        quote = "."
        if isinstance(refusal, str) and refusal:
            quote = f": {clean_message(refusal)}"
        raise EndpointError(f"The model declined to answer{quote}", "declined", is_permanent=True)
    if finish_reason in FAILURE_REASONS or choice.get("error"):
        raise build_reported_error(choice.get("error") or finish_reason, 200)


def _explain_empty_answer(message: Mapping[str, Any], thoughts: str) -> str:
    if message.get("tool_calls") or message.get("function_call"):
        return "The model called a tool in place of an answer."
    if thoughts or any(message.get(name) for name in THOUGHT_KEYS):
        return "The model thought and then answered nothing."
    return "The model answered nothing."


def extract_text(content: Any) -> str:
    """Return the text in the content of a message or delta: a text, parts of it, or null.

    Omits parts that contain reasoning or a refusal. Raises EndpointError.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise build_rubbish_error(
            "The content of the message is neither a text nor a list of parts."
        )
    return "".join(_iter_texts(content))


def _iter_texts(parts: list[Any]) -> Iterable[str]:
    for item in parts:
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping) and item.get("type", "text") in ("text", "output_text"):
            text = item.get("text")
            if not isinstance(text, str):
                raise build_rubbish_error("A part of the message has no text.")
            yield text


def _find_refusal(content: Any) -> str:
    parts = content
    if not isinstance(content, list):
        parts = ()
    refusals = (item.get("refusal") for item in parts if isinstance(item, Mapping))
    return next((refusal for refusal in refusals if isinstance(refusal, str) and refusal), "")


# Failures: by the status, and by words where servers use the wrong status for them.

_REASON_PATTERNS: tuple[tuple[Reason, re.Pattern[str]], ...] = (
    (
        "too_long",
        re.compile(
            r"context[ _-]?(?:length|window|size|limit)|maximum context|too many tokens"
            r"|(?:prompt|input|text|message)s? (?:is|are) too long|too long for (?:the|this) model"
            r"|(?:input|prompt)(?:_ids)?[ _](?:length|tokens)|max_(?:model|input)_len"
            r"|`?inputs`? (?:tokens|must have less than)|longer than (?:the model|\d+ tokens)"
            r"|exceeds? the (?:maximum|model)|exceed (?:the )?max(?:imum)? |reduce the length"
            r"|string_above_max_length|最大(?:长度|限制|上下文)|过长"
        ),
    ),
    (
        "filtered",
        re.compile(
            r"content[ _]?filter|content management policy|responsibleai|content policy"
            r"|flagged (?:by|as)|moderation|safety (?:system|filter|setting)|prohibited content"
        ),
    ),
    (
        "misconfigured",
        re.compile(
            r"api[ _-]?key|authentication|unauthori[sz]ed|invalid.{0,20}token passed|credential"
            r"|permission|forbidden|access denied|malformed token"
            r"|insufficient[ _]quota|billing|payment|balance|credit"
            r"|(?:invalid|unknown|unsupported|no such|not a valid|could not find) (?:the )?model"
            r"|model.{0,120}(?:not found|not exist|does not exist|no longer|not available"
            r"|not supported|is not loaded)"
            r"|server is pinned to|no endpoints found|not served by|model_not_found"
        ),
    ),
    ("busy", re.compile(r"rate[ _-]?limit|too many requests|overloaded|over capacity|throttl")),
)


def build_reported_error(error: Any, status: int) -> EndpointError:
    """Return the error that a server's `error` describes, with the server's message.

    error: an object or a text. status: of the response. An error within a successful response
    counts by its own code, and as `down` if it has none.
    """
    server_message, code = extract_message(error), _find_code(error)
    if status < 400:
        status = code or 502
    reason = _find_reason(f"{server_message} {_find_name(error)}", status)
    quote = "."
    if server_message:
        quote = f": {clean_message(server_message)}"
    is_permanent = reason in ("too_long", "filtered", "misconfigured", "refused")
    return EndpointError(
        f"{_REASON_SENTENCES[reason]} ({status}){quote}", reason, is_permanent=is_permanent
    )


def _find_reason(server_message: str, status: int) -> Reason:
    """Return the kind of a failure, from its message or otherwise from its status."""
    folded_message = server_message.casefold()
    # Words first: gateways answer 400 or 500 for nearly everything.
    named_reason = next(
        (reason for reason, pattern in _REASON_PATTERNS if pattern.search(folded_message)), None
    )
    # "Your account's rate limit" names the account, and is over in a minute.
    if (
        named_reason == "misconfigured"
        and status == 429
        and not re.search("quota|bill|credit", folded_message)
    ):
        named_reason = "busy"
    # A server that fails may say anything, so its words count only where the status allows.
    if named_reason and (status < 500 or named_reason in ("too_long", "busy", "filtered")):
        return named_reason
    if status == 429 or status == 529:
        return "busy"
    if status in (408, 504):
        return "slow"
    if status >= 500:
        return "down"
    if status == 413:
        return "too_long"
    if status in (400, 422):
        return "refused"
    return "misconfigured"


_REASON_SENTENCES: Mapping[Reason, str] = {
    "too_long": "The text is too long for the model",
    "filtered": "A content filter refused the text",
    "misconfigured": "The server did not accept how it is asked",
    "busy": "The server is busy",
    "slow": "The server took too long",
    "down": "The server failed",
    "refused": "The server refused this input",
}


def _find_name(error: Any) -> str:
    """Return the server's name for its error, such as context_length_exceeded, or ""."""
    names = (error.get(key) for key in ("code", "type")) if isinstance(error, Mapping) else ()
    return " ".join(name for name in names if isinstance(name, str))


def _find_code(error: Any) -> int:
    """Return the HTTP status that an error within a response contains; 0 if none."""
    for name in ("code", "status", "status_code"):
        code = None
        if isinstance(error, Mapping):
            code = error.get(name)
        text = ""
        if isinstance(code, int | str):
            text = str(code)
        if re.fullmatch(r"[45]\d\d", text):
            return int(text)
    return 0


def read_usage(answer: Mapping[str, Any]) -> Usage | None:
    """Return the tokens of prompt and answer; None if the server does not report both."""
    usage = answer.get("usage")
    if not isinstance(usage, Mapping):
        return None
    prompt_tokens, completion_tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(prompt_tokens, int) or not isinstance(completion_tokens, int):
        return None
    # Some servers report -1 where they did not count.
    is_sound = (
        min(prompt_tokens, completion_tokens) >= 0 and max(prompt_tokens, completion_tokens) < 10**9
    )
    if is_sound:
        return Usage(prompt_tokens, completion_tokens)
    return None


def read_logprob(answer: Mapping[str, Any], label: str = "") -> float | None:
    """Return the summed log probability of the first choice's tokens; None if not reported.

    label: counts only the tokens that spell it, where it was written last. So it isn't that of the
    JSON around it, which a schema may have forced.
    """
    tokens = _read_tokens(answer)
    start = "".join(text for text, _logprob in tokens).rfind(label)
    if not tokens or start < 0:
        return None
    logprobs, position = [], 0
    for text, logprob in tokens:
        # A token may also hold a quotation mark before the label, or the end of a word before it.
        if not label or (position < start + len(label) and position + len(text) > start):
            logprobs.append(logprob)
        position += len(text)
    return math.fsum(logprobs)


def _read_tokens(answer: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the text and log probability of each token; none if one isn't reported rightly."""
    logprobs = answer["choices"][0].get("logprobs")
    rows = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    tokens = []
    for row in rows if isinstance(rows, list) else []:
        logprob = row.get("logprob") if isinstance(row, Mapping) else None
        # One wrong number spoils the sum.
        if not isinstance(logprob, int | float) or logprob > 0:
            return []
        # Some servers leave the text out.
        text = row.get("token")
        tokens.append((text if isinstance(text, str) else "", float(logprob)))
    return tokens


def estimate_usage(messages: Sequence[Mapping[str, Any]], text: str) -> Usage:
    """Return the estimated usage of an answer that broke off: one token per four characters."""
    prompt_chars = sum(len(str(message["content"])) for message in messages)
    return Usage(-(-prompt_chars // 4), -(-len(text) // 4))


def is_listed(listed_name: Any, model: str) -> bool:
    """Return whether a listed id is the model's name, alone or after a folder: `models/NAME`."""
    return isinstance(listed_name, str) and (
        listed_name == model or listed_name.endswith(f"/{model}")
    )
