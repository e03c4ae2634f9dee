"""The settings of a task in plain words, one row for each step of the wizard."""

from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dynabench.manage.wizard.forms import POLICY_WORDS, RULE_LABELS, find_metric_title
from dynabench.manage.wizard.shared import STEP_WORDS
from tasks.making.outline import Data, copy_all_fields, get_value, list_steps, parse_data

LAST_STEP = "finish"
"""The step that publishes a draft and has no settings."""


class SettingRow(NamedTuple):
    """What a task's configuration sets in one step. facts: sentences about it, perhaps none."""

    step: str
    title: str
    facts: list[str]


def list_setting_rows(text: str) -> list[SettingRow]:
    """Return a row for each step that the task has. text: its stored configuration, in YAML."""
    data = parse_data(text)
    facts_by_step = {
        "goal": _describe_goal,
        "fields": _describe_fields,
        "answer": _describe_answer,
        "words": _describe_examples,
        "judging": _describe_judging,
        "limits": _describe_limits,
    }
    rows = []
    for step in list_steps(data):
        if step != LAST_STEP:
            rows.append(SettingRow(step, str(STEP_WORDS[step]), facts_by_step[step](data)))
    return rows


def _describe_goal(data: Data) -> list[str]:
    """Return the task's name and its goal, or its summary if it has none."""
    goal = get_value(data, ("goal", "text")) or data.get("summary")
    return [str(text) for text in (data.get("name"), goal) if text]


def _describe_fields(data: Data) -> list[str]:
    """Return the labels of all fields, in the order in which people meet them."""
    # A field that the writer fills in and the model answers has a title in the first place only.
    titles: dict[str, str] = {}
    for field in copy_all_fields(data):
        titles.setdefault(str(field.get("name")), str(field.get("label") or field.get("name")))
    return [", ".join(titles.values())] if titles else []


def _describe_answer(data: Data) -> list[str]:
    """Return when the model is fooled, and the metric that ranks models."""
    facts = []
    if rule := RULE_LABELS.get(get_value(data, ("verdict", "type"), "")):
        facts.append(str(rule))
    if metric := get_value(data, ("metrics", "main")):
        facts.append(_("Ranked by %(metric)s") % {"metric": find_metric_title(metric)})
    return facts


def _describe_examples(data: Data) -> list[str]:
    """Return how many examples the instructions show."""
    examples = get_value(data, ("examples",)) or {}
    count = sum(len(rows) for rows in examples.values() if isinstance(rows, list))
    return [ngettext("%(n)d example", "%(n)d examples", count) % {"n": count}]


def _describe_judging(data: Data) -> list[str]:
    """Return the rule by which votes decide."""
    votes = get_value(data, ("validation", "votes")) or {}
    rule, needed_count, most_count = votes.get("rule"), votes.get("needed"), votes.get("of")
    if rule == "at-least" and needed_count and most_count:
        words = _("%(needed)d matching votes out of at most %(of)d decide")
        return [words % {"needed": needed_count, "of": most_count}]
    if rule == "n-equal" and needed_count:
        return [_("%(needed)d matching votes decide") % {"needed": needed_count}]
    return [str(POLICY_WORDS[rule])] if rule in POLICY_WORDS else []


def _describe_limits(data: Data) -> list[str]:
    """Return how many tries a person has on a text and in a day, where that is limited."""
    facts = []
    if tries := get_value(data, ("limits", "tries_per_context")):
        words = ngettext("%(n)d try on each text", "%(n)d tries on each text", tries)
        facts.append(words % {"n": tries})
    if tries := get_value(data, ("limits", "tries_per_day")):
        words = ngettext("%(n)d try a day", "%(n)d tries a day", tries)
        facts.append(words % {"n": tries})
    return facts
