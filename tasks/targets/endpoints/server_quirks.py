"""Learn from a chat server's refusals which requests it accepts. Pure, no Django.

Servers refuse parameters that others require: newer models of OpenAI take `max_completion_tokens`
and no temperature, Gemma's templates no system message, llama.cpp no JSON schema. A refusal names
what the server does not accept. The request is changed and sent again. The change is remembered for
the server and model.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from serving.generation.system_text import move_system_text
from serving.generation.tool_turns import fold_tool_turns, has_tool_turns

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
"""Patterns by which a refusal names a parameter, for each parameter that is not essential."""
PARAMETERS_WITHOUT_EFFECT = {"stream_options", "response_format", "logprobs"}
"""Optional parameters whose omission does not change the model's identity."""
_LIMIT_PATTERN = re.compile("max_completion_tokens")
_MAX_TOKENS_PATTERN = re.compile(
    r"max_(?:completion_|new_|output_)?tokens\b.{0,120}?"
    r"(?:at most|<=|less than or equal to|maximum(?: value)?(?: is| of)?:?)\s*`?(\d+)"
)
"""A pattern for the maximum number of tokens of an answer, as a server's message names it."""
_TOOL_PATTERN = re.compile(
    r"tool_calls?\b|tool_call_id|role.{0,60}tool|tool (?:role|message|call)|'tool'|function_call"
)
_STATUS_PATTERN = re.compile(r'"(?:code|status|status_code)": *"?\d+')
MIN_REMAINING_TOKENS = 16
"""The minimum number of tokens left for an answer for which a call is worthwhile."""
_SYSTEM_PATTERN = re.compile(
    r"system (?:role|message|prompt|instruction)|role.{0,20}system|system.{0,40}not supported"
    r"|roles must alternate|only user and assistant|developer instruction"
)


@dataclass(frozen=True)
class ServerQuirks:
    """The ways in which requests are adapted to a server.

    is_limit_renamed: whether the token limit has its newer name. max_tokens: the server's limit
    for an answer; 0 while unknown. dropped_parameters: the omitted parameters. is_system_folded:
    whether the system text is put into the first question. are_tools_folded: whether calls of tools
    and their results are sent as plain turns. uses_responses: whether the server is asked at
    /responses.
    """

    is_limit_renamed: bool = False
    max_tokens: int = 0
    dropped_parameters: frozenset[str] = frozenset()
    is_system_folded: bool = False
    are_tools_folded: bool = False
    uses_responses: bool = False

    def adapt_payload(
        self, payload: Payload, *, needed_parameters: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return a request in the form that the server accepts.

        needed_parameters: parameters that are never omitted.
        """
        dropped_options = self.dropped_parameters.difference(needed_parameters)
        adapted_payload = {}
        for name, value in payload.items():
            if name not in dropped_options:
                adapted_payload[name] = value
        if self.max_tokens and "max_tokens" in adapted_payload:
            adapted_payload["max_tokens"] = min(adapted_payload["max_tokens"], self.max_tokens)
        if self.is_limit_renamed and "max_tokens" in adapted_payload:
            adapted_payload["max_completion_tokens"] = adapted_payload.pop("max_tokens")
        if self.are_tools_folded:
            adapted_payload["messages"] = fold_tool_turns(adapted_payload["messages"])
        if self.is_system_folded:
            adapted_payload["messages"] = move_system_text(adapted_payload["messages"])
        return adapted_payload

    @property
    def description(self) -> str:
        """Return a description of all adaptations, which is part of a model's identity."""
        parts = [
            f"no {name}" for name in sorted(self.dropped_parameters - PARAMETERS_WITHOUT_EFFECT)
        ]
        if self.is_system_folded:
            parts.append("system text in the first question")
        if self.are_tools_folded:
            parts.append("calls of tools as texts")
        return ", ".join(parts)


NO_QUIRKS = ServerQuirks()


def learn_quirks(
    quirks: ServerQuirks, payload: Payload, message: str, *, needed_options: Sequence[str] = ()
) -> ServerQuirks:
    """Return the quirks with what a refusal adds to them; unchanged if it names no cause.

    payload: the refused request. message: the server's message. needed_options: parameters that are
    never omitted.
    """
    folded_message = message.casefold()
    # 1. The server names a limit of tokens: ask for no more than that.
    if (max_tokens := _find_max_tokens(folded_message)) and max_tokens < _get_limit(payload):
        return replace(quirks, max_tokens=max_tokens)
    # 2. It wants the newer name of the limit.
    if "max_tokens" in payload and _LIMIT_PATTERN.search(folded_message):
        return replace(quirks, is_limit_renamed=True)
    # 3. It names a parameter that an answer can do without.
    for name, pattern in OPTIONAL_PARAMETERS.items():
        if name in payload and name not in needed_options and re.search(pattern, folded_message):
            return replace(quirks, dropped_parameters=quirks.dropped_parameters | {name})
    # 4. It takes no system message, whose text then begins the first question.
    if _has_system(payload) and _SYSTEM_PATTERN.search(folded_message):
        return replace(quirks, is_system_folded=True)
    # 5. It knows no tools, so that calls and results become plain turns.
    if has_tool_turns(payload["messages"]) and _TOOL_PATTERN.search(folded_message):
        return replace(quirks, are_tools_folded=True)
    return quirks


def compute_remaining_tokens(message: str, payload: Payload) -> int:
    """Return how many tokens the model's context leaves for the answer; 0 if too few or unknown.

    Servers count the requested answer, so a text that fits may be refused together with it.
    message: the server's message, which contains the lengths of the context and of the text in
    tokens.
    """
    # A refusal that names our limit and the context's length tells how much room the text leaves.
    limit = _get_limit(payload)
    without_status = _STATUS_PATTERN.sub("", message)
    token_counts = set(map(int, re.findall(r"(?<![\w.])\d+(?![\w.]\d)", without_status)))
    if limit not in token_counts:
        return 0
    lengths = token_counts - {limit}
    lengths -= {length + limit for length in lengths}  # what was asked for, all together
    if not lengths:
        return 0
    context = max(lengths)
    prompt = max(lengths - {context}, default=0)
    # Without the text's length: half of the context, so that the text may take the other.
    remaining_tokens = min(context - prompt if prompt else context // 2, limit - 1)
    if prompt + limit > context and remaining_tokens >= MIN_REMAINING_TOKENS:
        return remaining_tokens
    return 0


def _get_limit(payload: Payload) -> int:
    """Return the maximum number of tokens in a request, under either name; 0 if there is none."""
    return int(payload.get("max_tokens") or payload.get("max_completion_tokens") or 0)


def _find_max_tokens(message: str) -> int:
    match = _MAX_TOKENS_PATTERN.search(message)
    if match:
        return int(match[1])
    return 0


def _has_system(payload: Payload) -> bool:
    return any(turn["role"] == "system" for turn in payload["messages"])
