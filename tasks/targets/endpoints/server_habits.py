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

from tasks.targets.serving.generation.system_text import fold_system

Payload = Mapping[str, Any]

OPTIONAL = {
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
WITHOUT_EFFECT = {"stream_options", "response_format", "logprobs"}
"""Of these the ones whose lack makes no other model."""
_LIMIT = re.compile("max_completion_tokens")
_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)|role.{0,20}system|system.{0,40}not supported"
    r"|roles must alternate|only user and assistant|developer instruction"
)


@dataclass(frozen=True)
class Habits:
    """How a server is asked: the limit's newer name, parameters left out, the system text moved."""

    is_limit_renamed: bool = False
    dropped: frozenset[str] = frozenset()
    is_system_folded: bool = False

    def adapt(self, payload: Payload, *, needed: Sequence[str] = ()) -> dict[str, Any]:
        """Return a request as the server takes it; needed: parameters that are never left out."""
        dropped = self.dropped.difference(needed)
        adapted = {name: value for name, value in payload.items() if name not in dropped}
        if self.is_limit_renamed and "max_tokens" in adapted:
            adapted["max_completion_tokens"] = adapted.pop("max_tokens")
        if self.is_system_folded:
            adapted["messages"] = fold_system(adapted["messages"])
        return adapted

    @property
    def in_words(self) -> str:
        """How a request differs from the usual one, as a part of a model's identity."""
        parts = [f"no {name}" for name in sorted(self.dropped - WITHOUT_EFFECT)]
        parts += ["system text in the first question"] if self.is_system_folded else []
        return ", ".join(parts)


USUAL = Habits()


def learn(habits: Habits, payload: Payload, words: str, *, needed: Sequence[str] = ()) -> Habits:
    """Return the habits after a refusal of a request, the same ones where it names none.

    payload: as it was sent. words: of the refusal. needed: parameters that are never left out.
    """
    folded = words.casefold()
    if "max_tokens" in payload and _LIMIT.search(folded):
        return replace(habits, is_limit_renamed=True)
    for name, pattern in OPTIONAL.items():
        if name in payload and name not in needed and re.search(pattern, folded):
            return replace(habits, dropped=habits.dropped | {name})
    if _has_system(payload) and _SYSTEM.search(folded):
        return replace(habits, is_system_folded=True)
    return habits


def _has_system(payload: Payload) -> bool:
    return any(message["role"] == "system" for message in payload["messages"])
