"""Parameters of OpenAI's protocol and its dialects that this server does not support. Pure.

Clients also send values that switch something off: null, an empty list, a default, `tool_choice:
"none"`. These do not change the answer and are ignored. Any other value would, and is refused.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from serving.errors import build_wrong_field_error

NEUTRAL_PARAMETERS: Final = frozenset(
    (
        "cache_prompt",
        "cache_salt",
        "include_reasoning",
        "keep_alive",
        "metadata",
        "parallel_tool_calls",
        "prediction",
        "prompt_cache_key",
        "prompt_cache_retention",
        "request_id",
        "safety_identifier",
        "user",
    )
)
"""Parameters with names and hints for the server. They never change the answer."""

NEUTRAL_VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    # OpenAI
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0, False),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "n": (1,),
    "presence_penalty": (0, False),
    "reasoning_effort": ("none",),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "suffix": ("",),
    "verbosity": ("medium",),
    # vLLM and transformers
    "add_generation_prompt": (True,),
    "add_special_tokens": (False,),
    "continue_final_message": (False,),
    "detokenize": (True,),
    "early_stopping": (False,),
    "include_stop_str_in_output": (False,),
    "length_penalty": (1,),
    "min_p": (0,),
    "min_tokens": (0,),
    "num_beams": (1,),
    "priority": (0,),
    "prompt_logprobs": (False,),
    "repetition_penalty": (1,),
    "return_token_ids": (False,),
    "return_tokens_as_token_ids": (False,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "top_k": (0, -1),
    "typical_p": (1,),
    "use_beam_search": (False,),
    # llama.cpp
    "dry_multiplier": (0,),
    "grammar": ("",),
    "mirostat": (0,),
    "n_probs": (0,),
    "repeat_penalty": (1,),
    "timings_per_token": (False,),
    "xtc_probability": (0,),
}
"""The values that have no effect, by parameter. Null and empty values never have one."""


def select_served_parameters(
    body: Mapping[str, Any], served_names: Collection[str]
) -> dict[str, Any]:
    """Return the parameters in `served_names`, without nulls.

    Raises BadRequestError for any other parameter, unless it has no effect.
    """
    served_values = {}
    for name, value in body.items():
        if value is None:
            continue
        if name in served_names:
            served_values[name] = value
        # Ignoring a parameter would answer something else than was requested.
        elif not _has_no_effect(name, value, body):
            raise build_wrong_field_error(name, _describe_refusal(name))
    return served_values


def _has_no_effect(name: str, value: Any, body: Mapping[str, Any]) -> bool:
    """Return whether an unsupported parameter with this value would not change the answer."""
    if name in NEUTRAL_PARAMETERS or value in ([], {}):
        return True
    # As with tools: the model calls nothing by itself.
    if name == "functions" and body.get("function_call") in (None, "none", "auto"):
        return True
    return any(
        _is_same_value(value, neutral_value) for neutral_value in NEUTRAL_VALUES.get(name, ())
    )


def _is_same_value(value: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. 1 equals 1.0 but not true."""
    return isinstance(value, bool) is isinstance(other, bool) and bool(value == other)


def _describe_refusal(name: str) -> str:
    if name == "functions":
        return "are not served here. Send tools."
    if name in NEUTRAL_VALUES:
        values = " or ".join(format_json(value) for value in NEUTRAL_VALUES[name])
        return f"is not served here, except as {values}."
    return "is not served here."


def format_json(value: Any) -> str:
    """Return a value as JSON text for people."""
    return json.dumps(value, ensure_ascii=False)
