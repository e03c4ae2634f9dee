"""The configuration of a task that an import creates, derived from its fields and labels."""

import json
import re
from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any

from core.text.words import format_label
from tasks.config.loading import dump_config, load_config
from tasks.formats.base import UNKNOWN_TERMS, Terms
from tasks.services import derive_title
from validation.consensus.consensus import Policy
from validation.imports.columns import build_field_title

ANSWER_FIELD = "label"
# The number of digits that a float stores exactly, so that numbers sort by size.
_NUMBER_PATTERN = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
MAX_LABEL_CHARS = 200
"""Longer answers, and answers of several lines, are free text, not labels."""
MAX_LABELS = 30
"""If there are more different answers, they are free text, not labels."""


def create_config(
    code: str,
    context: Mapping[str, str],
    inputs: Mapping[str, str],
    labels: Iterable[str],
    policy: Policy | None,
    max_votes: int,
    *,
    conversation_fields: Container[str] = (),
    is_about_model: bool = False,
    has_free_text: bool = False,
    terms: Terms = UNKNOWN_TERMS,
    step_labels: Iterable[str] = (),
) -> str:
    """Return a configuration in YAML, in which `label` is the field of the answers.

    context, inputs: the column of each field. labels: every answer of an author, a model or a
    validator, in order. max_votes: the maximum on one example. conversation_fields: contexts that
    are conversations. is_about_model: people judge the model's answers, unless they choose labels.
    has_free_text: answers are texts, even if there are few. step_labels: what people choose from
    for each step of the first conversation; empty: they judge only the whole. Raises ConfigError.
    """
    # A configuration needs a field even before any row was read.
    if not context and not inputs:
        inputs = {"text": "text"}
    values = [*filter(None, dict.fromkeys(format_label(label) for label in labels))]
    # A single label leaves nothing to choose from.
    is_choice = not (has_free_text or are_texts(values)) and len(values) >= 2
    answer = {"type": "multiclass", "labels": values} if is_choice else {"type": "long_text"}
    is_about_model = is_about_model and not is_choice
    config: dict[str, Any] = {
        "version": 1,
        "name": derive_title(code),
        "goal": {"text": "Write an example that the model gets wrong"},
        "context": [
            {**field, "type": "chat"} if field["name"] in conversation_fields else field
            for field in _build_fields(context, "text")
        ],
        "input": [
            *_build_fields(inputs, "long_text"),
            *([] if is_about_model else [{"name": ANSWER_FIELD, **answer}]),
        ],
        "output": [{"name": ANSWER_FIELD, **(answer if is_about_model else {})}],
        "verdict": _build_verdict(is_choice, is_about_model),
        "metrics": {"main": "accuracy" if is_choice else "squad_f1"},
        "validation": {"mode": "label" if is_choice else "verdict"},
    }
    # Rows of traces have one conversation.
    step_field = next((name for name in context if name in conversation_fields), None)
    if step_labels and step_field:
        config["validation"]["steps"] = {"field": step_field, "labels": list(step_labels)}
    if terms.license or terms.citation:
        config["about"] = {"license": terms.license, "citation": terms.citation}
    # Configurations cannot name that rule; it is in the round's own policy.
    if policy and policy.rule != "dawid-skene":
        config["validation"]["votes"] = _build_votes(policy, max_votes)
    # Loaded to validate it, so that only a valid configuration is stored.
    return dump_config(load_config(json.dumps(config)))


def are_texts(answers: Collection[str]) -> bool:
    """Return whether answers are free texts: one is long or multi-line, or there are many."""
    is_long = any(len(answer) > MAX_LABEL_CHARS or "\n" in answer for answer in answers)
    return is_long or len(answers) > MAX_LABELS


def sort_labels(labels: Iterable[str]) -> list[str]:
    """Sort the labels by name, but numbers first and by size.

    >>> sort_labels(["10", "b", "9", "a"])
    ['9', '10', 'a', 'b']
    """

    def build_sort_key(label: str) -> tuple[bool, float, str]:
        is_number = _NUMBER_PATTERN.fullmatch(label) is not None
        return not is_number, float(label) if is_number else 0, label

    return sorted(labels, key=build_sort_key)


def _build_verdict(is_choice: bool, is_about_model: bool) -> dict[str, Any]:
    if is_choice:
        return {"type": "exact_match", "fields": [ANSWER_FIELD]}
    return {"type": "ask_user"} if is_about_model else {"type": "string_f1", "field": ANSWER_FIELD}


def _build_fields(columns: Mapping[str, str], kind: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "type": kind, **build_field_title(name, column)}
        for name, column in columns.items()
    ]


def _build_votes(policy: Policy, max_votes: int) -> dict[str, Any]:
    votes: dict[str, Any] = {"rule": policy.rule}
    if policy.rule in ("n-equal", "at-least"):
        votes["needed"] = policy.needed
    # The other rules need the number of votes: the maximum of all rows.
    if policy.rule != "n-equal":
        votes["of"] = max(max_votes, policy.needed)
    return votes
