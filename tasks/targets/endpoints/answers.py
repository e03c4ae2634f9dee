"""Strict reading of what a target sent: JSON, labels, probabilities and answer spans."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from core.files.damage import damage_of
from core.text.words import composed, label_of
from tasks.config.stretches import find_spans
from tasks.config.values import check_answer
from tasks.targets.endpoints.base import QA_KIND, EndpointConfig, rubbish

MAX_DEPTH = 20
SUM_TOLERANCE = 1e-3
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _no_constant(name: str) -> NoReturn:
    raise rubbish(f"The answer is not JSON: {name} is not a JSON number.")


def strict_json(body: bytes) -> Any:
    """Parse a JSON text. Raises EndpointError(rubbish) for NaN, infinities and unstorable texts."""
    try:
        # A mark of UTF-8 before the text is none of it.
        value = json.loads(body.decode("utf-8-sig"), parse_constant=_no_constant)
    except RecursionError:
        raise rubbish(f"The answer nests deeper than {MAX_DEPTH} levels.") from None
    except ValueError as error:
        raise rubbish(f"The answer is not JSON: {damage_of(error)}.") from None
    # Level by level, without recursion: nested brackets of a server cannot exhaust the stack.
    level = [value]
    for _ in range(MAX_DEPTH):
        next_level: list[Any] = []
        for parent in level:
            next_level += _children(parent)
        if not next_level:
            return value
        level = next_level
    raise rubbish(f"The answer nests deeper than {MAX_DEPTH} levels.")


def _children(value: Any) -> list[Any]:
    """Return the items of a container; check a scalar and return []."""
    if isinstance(value, dict):
        return list(value.keys()) + list(value.values())
    if isinstance(value, list):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise rubbish("The answer holds a number that is too large.")
    if isinstance(value, str) and _UNSTORABLE.search(value):
        raise rubbish("The answer holds a NUL or half of a surrogate pair.")
    return []


def expect_object(value: Any, subject: str) -> dict[str, Any]:
    """Return the value if it is an object; else raise EndpointError(rubbish)."""
    if not isinstance(value, dict):
        raise rubbish(f"{subject} must be a JSON object, not {type(value).__name__}.")
    return value


def expect_list(value: Any, count: int, subject: str) -> list[Any]:
    """Return the value if it is a list of `count` entries; else raise EndpointError(rubbish)."""
    if not isinstance(value, list) or len(value) != count:
        got = len(value) if isinstance(value, list) else type(value).__name__
        raise rubbish(f"{subject} must be a list of {count}, not {got}.")
    return value


def expect_number(value: Any, subject: str) -> float:
    """Return the value as a finite float; else raise EndpointError(rubbish)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise rubbish(f"{subject} must be a number, not {type(value).__name__}.")
    if abs(value) > 1e300 or not math.isfinite(value):
        raise rubbish(f"{subject} must be finite.")
    return float(value)


def read_output(
    config: EndpointConfig, item: Mapping[str, Any], output: Any, *, first_place: bool = False
) -> dict[str, Any]:
    """Return the validated output for one example. Raises EndpointError(rubbish).

    first_place: whether an extractive answer without offsets is located at its first occurrence in
    the passage, for servers that can answer only with text. Otherwise it must occur exactly once.
    """
    values = expect_object(output, "The output")
    if config.output not in values:
        raise rubbish(f"The output lacks the field {config.output!r}; it has {sorted(values)}.")
    answer = values[config.output]
    # 1. A label, in whatever case the model writes it.
    if config.labels is not None:
        label = label_of(answer, config.labels)
        if label is None:
            raise rubbish(f"{answer!r:.80} is not one of the labels {list(config.labels)}.")
        return {config.output: label}
    # 2. A span, which must stand in the passage.
    if config.kind == QA_KIND:
        return _read_span(config, str(item[config.passage_field]), values, first_place)
    # 3. Anything else, by the checks of its field type.
    if answer is None:
        raise rubbish(f"The output field {config.output!r} is null.")
    for problem in check_answer(config.answer, answer, item) if config.answer else ():
        raise rubbish(f"The output field {config.output!r}: {problem}.")
    return {**values, config.output: composed(answer) if isinstance(answer, str) else answer}


def _read_span(
    config: EndpointConfig, passage: str, output: Mapping[str, Any], first_place: bool
) -> dict[str, Any]:
    answer, start, end = output[config.output], output.get("start"), output.get("end")
    if not isinstance(answer, str) or not answer.strip():
        raise rubbish("The answer must be a text that is not empty.")
    # Only a text: it is searched for, and must be unambiguous unless the server can say no more.
    if start is None and end is None:
        places = find_spans(answer, passage)
        if not places:
            raise rubbish(f"The answer {answer!r:.80} is not in the passage.")
        if len(places) > 1 and not first_place:
            raise rubbish("The answer occurs more than once: send its start and end.")
        start, end = places[0]
        answer = passage[start:end]
    # `type` and not isinstance: to Python True is a number.
    if type(start) is not int or type(end) is not int or start < 0:
        raise rubbish("start and end must be whole numbers, 0 or more.")
    if passage[start:end] != answer or end - start != len(answer):
        raise rubbish(f"passage[{start}:{end}] is not the answer {answer!r:.80}.")
    return {config.output: answer, "start": start, "end": end}


def read_prob(config: EndpointConfig, prob: Any) -> dict[str, float] | None:
    """Return the validated probabilities, or None without any. Raises EndpointError(rubbish).

    Probabilities of labels sum to 1. An answer's confidence, without labels, is at most 1.
    """
    if prob is None:
        return None
    values = {
        key: expect_number(p, f"prob[{key!r:.80}]")
        for key, p in expect_object(prob, "prob").items()
    }
    if any(not 0 <= p <= 1 for p in values.values()):
        raise rubbish("Every probability must lie in 0 to 1.")
    total = sum(values.values())
    if config.labels is None:
        if total > 1 + SUM_TOLERANCE:
            raise rubbish(f"The probabilities sum to {total:.6g}, more than 1.")
        return values
    for name in sorted(values):
        if label_of(name, config.labels) is None:
            raise rubbish(f"prob names {name!r:.80}, not one of the labels {list(config.labels)}.")
    # In our spelling of the labels.
    values = {str(label_of(name, config.labels)): share for name, share in values.items()}
    if abs(total - 1) > SUM_TOLERANCE:
        raise rubbish(f"The probabilities sum to {total:.6g}, not to 1.")
    return values
