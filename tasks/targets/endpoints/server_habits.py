"""What a chat model's server takes, learnt from its refusals. Pure, no Django.

Servers refuse parameters that others ask for: newer models of OpenAI take `max_completion_tokens`
and no temperature, Gemma's templates no system message, llama.cpp no JSON schema. A refusal names
what it does not take, so the request is changed, sent again, and the change remembered for the
server and model.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from serving.generation.system_text import fold_system

Payload = Mapping[str, Any]

OPTIONAL_PARAMETERS = {
    "temperature": "temperature",
    "seed": "seed",
    "stop": "'stop'|`stop`|\"stop\"|stop sequences?",
    "logprobs": "log_?probs?",
    "stream_options": "stream_options|include_usage",
    "response_format": (
        "response_format|json_schema|json schema|structured[ _]outputs?|grammar|guided"
    ),
}
"""By parameter that an answer can do without, how a refusal names it."""
PARAMETERS_WITHOUT_EFFECT = {"stream_options", "response_format", "logprobs"}
"""Of these the ones whose lack makes no other model."""
_LIMIT = re.compile("max_completion_tokens")
_MOST = re.compile(
    r"max_(?:completion_|new_|output_)?tokens\b.{0,120}?"
    r"(?:at most|<=|less than or equal to|maximum(?: value)?(?: is| of)?:?)\s*`?(\d+)"
)
"""The most tokens of an answer that a server allows."""
_STATUS = re.compile(r'"(?:code|status|status_code)": *"?\d+')
MIN_ROOM_TOKENS = 16
"""Tokens that must be left beside a text for an answer to be worth asking for."""
_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)|role.{0,20}system|system.{0,40}not supported"
    r"|roles must alternate|only user and assistant|developer instruction"
)


@dataclass(frozen=True)
class Habits:
    """The ways in which requests are adapted to a server.

    That is the name of the limit, the omitted parameters, and the place of the system text.
    most_tokens: the server's limit for an answer; 0 while unknown.
    """

    is_limit_renamed: bool = False
    most_tokens: int = 0
    dropped: frozenset[str] = frozenset()
    is_system_folded: bool = False

    def adapt(self, payload: Payload, *, needed: Sequence[str] = ()) -> dict[str, Any]:
        """Return a request in the form that the server accepts.

        needed: parameters that are never omitted.
        """
        dropped_options = self.dropped.difference(needed)
        adapted_payload = {}
        for name, value in payload.items():
            if name not in dropped_options:
                adapted_payload[name] = value
        if self.most_tokens and "max_tokens" in adapted_payload:
            adapted_payload["max_tokens"] = min(adapted_payload["max_tokens"], self.most_tokens)
        if self.is_limit_renamed and "max_tokens" in adapted_payload:
            adapted_payload["max_completion_tokens"] = adapted_payload.pop("max_tokens")
        if self.is_system_folded:
            adapted_payload["messages"] = fold_system(adapted_payload["messages"])
        return adapted_payload

    @property
    def in_words(self) -> str:
        """Return a description of all adaptations, as a part of a model's identity."""
        parts = [f"no {name}" for name in sorted(self.dropped - PARAMETERS_WITHOUT_EFFECT)]
        if self.is_system_folded:
            parts.append("system text in the first question")
        return ", ".join(parts)


USUAL_HABITS = Habits()


def learn_habits(
    habits: Habits, payload: Payload, words: str, *, needed_options: Sequence[str] = ()
) -> Habits:
    """Return the habits after a refusal; unchanged if the refusal names no cause.

    payload: the refused request. words: the server's message. needed_options: parameters that are
    never omitted.
    """
    folded_words = words.casefold()
    # 1. The server names a limit of tokens: ask for no more than that.
    if (most := _find_most_tokens(folded_words)) and most < _get_limit(payload):
        return replace(habits, most_tokens=most)
    # 2. It wants the newer name of the limit.
    if "max_tokens" in payload and _LIMIT.search(folded_words):
        return replace(habits, is_limit_renamed=True)
    # 3. It names a parameter that an answer can do without.
    for name, pattern in OPTIONAL_PARAMETERS.items():
        if name in payload and name not in needed_options and re.search(pattern, folded_words):
            return replace(habits, dropped=habits.dropped | {name})
    # 4. It takes no system message, whose text then begins the first question.
    if _has_system(payload) and _SYSTEM.search(folded_words):
        return replace(habits, is_system_folded=True)
    return habits


def compute_room(words: str, payload: Payload) -> int:
    """Return how many tokens the model's context leaves for the answer; 0 if too few or unknown.

    Servers count the requested answer, so a text that fits may be refused together with it. words:
    the server's message, which contains the lengths of the context and of the text in tokens.
    """
    # A refusal that names our limit and the context's length tells how much room the text leaves.
    limit = _get_limit(payload)
    without_status = _STATUS.sub("", words)
    numbers = set(map(int, re.findall(r"(?<![\w.])\d+(?![\w.]\d)", without_status)))
    if limit not in numbers:
        return 0
    lengths = numbers - {limit}
    lengths -= {length + limit for length in lengths}  # what was asked for, all together
    if not lengths:
        return 0
    context = max(lengths)
    prompt = max(lengths - {context}, default=0)
    # Without the text's length: half of the context, so that the text may take the other.
    room = min(context - prompt if prompt else context // 2, limit - 1)
    if prompt + limit > context and room >= MIN_ROOM_TOKENS:
        return room
    return 0


def _get_limit(payload: Payload) -> int:
    """Return the maximum number of tokens that a request asks for, by either name."""
    return int(payload.get("max_tokens") or payload.get("max_completion_tokens") or 0)


def _find_most_tokens(words: str) -> int:
    match = _MOST.search(words)
    if match:
        return int(match[1])
    return 0


def _has_system(payload: Payload) -> bool:
    return any(message["role"] == "system" for message in payload["messages"])
