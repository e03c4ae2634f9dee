"""The configuration of a task that an import makes, from the fields and labels it saw."""

import json
import re
from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any

from core.text.words import label_text
from tasks.config.loading import dump_config, load_config
from tasks.formats.base import UNKNOWN_TERMS, Terms
from tasks.services import derive_title
from validation.consensus.consensus import Policy
from validation.imports.columns import titled

ANSWER = "label"
# Whole digits that a float keeps exactly, so that numbers sort by size.
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
LONGEST_LABEL = 200
"""Longer answers are free text, not labels; so are those of several lines."""
MOST_LABELS = 30
"""With more different answers they are free text, not labels."""


def created_config(
    code: str,
    context: Mapping[str, str],
    inputs: Mapping[str, str],
    labels: Iterable[str],
    policy: Policy | None,
    most_votes: int,
    *,
    talks: Container[str] = (),
    about_model: bool = False,
    is_free: bool = False,
    terms: Terms = UNKNOWN_TERMS,
) -> str:
    """Return a configuration in YAML, whose answers are in the field `label`.

    context, inputs: the column of each field. labels: every answer of an author, a model or a
    validator, in order. most_votes: the maximum on one example. talks: contexts that are
    conversations. about_model: people judge the model's answers, unless they choose labels.
    is_free: answers are texts, even if there are few. Raises ConfigError.
    """
    # A configuration needs a field, also before any row was read.
    if not context and not inputs:
        inputs = {"text": "text"}
    values = [*filter(None, dict.fromkeys(label_text(label) for label in labels))]
    # A single label leaves nothing to choose from.
    is_choice = not (is_free or are_texts(values)) and len(values) >= 2
    answer = {"type": "multiclass", "labels": values} if is_choice else {"type": "long_text"}
    about_model = about_model and not is_choice
    config: dict[str, Any] = {
        "version": 1,
        "name": derive_title(code),
        "goal": {"text": "Write an example that the model gets wrong"},
        "context": [
            {**field, "type": "chat"} if field["name"] in talks else field
            for field in _fields(context, "text")
        ],
        "input": [
            *_fields(inputs, "long_text"),
            *([] if about_model else [{"name": ANSWER, **answer}]),
        ],
        "output": [{"name": ANSWER, **(answer if about_model else {})}],
        "verdict": _verdict(is_choice, about_model),
        "metrics": {"main": "accuracy" if is_choice else "squad_f1"},
        "validation": {"mode": "label" if is_choice else "verdict"},
    }
    if terms.license or terms.citation:
        config["about"] = {"license": terms.license, "citation": terms.citation}
    # Configurations cannot name that rule; the round's own policy has it.
    if policy and policy.rule != "dawid-skene":
        config["validation"]["votes"] = _votes(policy, most_votes)
    # Loaded once, so that only a valid configuration is stored.
    return dump_config(load_config(json.dumps(config)))


def are_texts(answers: Collection[str]) -> bool:
    """Return whether answers are free texts: one is long or multi-line, or there are many."""
    is_long = any(len(answer) > LONGEST_LABEL or "\n" in answer for answer in answers)
    return is_long or len(answers) > MOST_LABELS


def in_order(labels: Iterable[str]) -> list[str]:
    """Sort the labels by name, but numbers first and by size.

    >>> in_order(["10", "b", "9", "a"])
    ['9', '10', 'a', 'b']
    """

    def place(label: str) -> tuple[bool, float, str]:
        is_number = _NUMBER.fullmatch(label) is not None
        return not is_number, float(label) if is_number else 0, label

    return sorted(labels, key=place)


def _verdict(is_choice: bool, about_model: bool) -> dict[str, Any]:
    if is_choice:
        return {"type": "exact_match", "fields": [ANSWER]}
    return {"type": "ask_user"} if about_model else {"type": "string_f1", "field": ANSWER}


def _fields(columns: Mapping[str, str], kind: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "type": kind, **titled(name, column)} for name, column in columns.items()
    ]


def _votes(policy: Policy, most_votes: int) -> dict[str, Any]:
    votes: dict[str, Any] = {"rule": policy.rule}
    if policy.rule in ("n-equal", "at-least"):
        votes["needed"] = policy.needed
    # The other rules must say how many votes there are: the most that a row has.
    if policy.rule != "n-equal":
        votes["of"] = max(most_votes, policy.needed)
    return votes
