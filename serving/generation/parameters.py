"""Parameters of OpenAI's protocol and its dialects that this server does not use. Pure.

Clients send what is off: null, an empty list, a default, `tool_choice: "none"`. That changes no
answer and is passed over. Any other value of them would be, and is refused.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from serving.errors import wrong_field

NOTES: Final = frozenset(
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
"""Names and hints for the server. They change no answer, whatever they say."""

OFF: Final[Mapping[str, tuple[Any, ...]]] = {
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
"""For each parameter the values that ask for nothing; null and empty ones do so for every name."""


def without_unused(body: Mapping[str, Any], served_names: Collection[str]) -> dict[str, Any]:
    """Return the parameters in `served_names`, without nulls.

    Raises BadRequestError for any other parameter unless it has no effect or is a note.
    """
    served_values = {}
    for name, value in body.items():
        if value is None:
            continue
        if name in served_names:
            served_values[name] = value
        # Ignoring a parameter would answer something else than was requested.
        elif not _is_off(name, value, body):
            raise wrong_field(name, _refusal(name))
    return served_values


def _is_off(name: str, value: Any, body: Mapping[str, Any]) -> bool:
    """Return whether an unsupported parameter with this value would not change the answer."""
    if name in NOTES or value in ([], {}):
        return True
    if name == "functions" and body.get("function_call") == "none":
        return True
    return any(_same(value, off) for off in OFF.get(name, ()))


def _same(value: Any, off_value: Any) -> bool:
    """Return whether two JSON values are equal. 1 equals 1.0 but not true."""
    return isinstance(value, bool) is isinstance(off_value, bool) and bool(value == off_value)


def _refusal(name: str) -> str:
    if name == "functions":
        return "are not served here. Send tools."
    if name in OFF:
        values = " or ".join(json_text(value) for value in OFF[name])
        return f"is not served here, except as {values}."
    return "is not served here."


def json_text(value: Any) -> str:
    """Return a value as JSON text for people."""
    return json.dumps(value, ensure_ascii=False)
