"""Check the rules of a configuration's `verdict`, each by itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import regex

from tasks.config.components import Component
from tasks.config.parsing import Finding, Loc, suggest_nearest
from tasks.config.schema import TaskConfig
from tasks.config.verdicts import ByCriteria, Decide, Pattern, Secret, StringF1


def list_text_names(components: Iterable[Component]) -> list[str]:
    """Return the names of the fields with free text."""
    return [component.name for component in components if component.kind.is_text]


def find_ask_between_errors(rule: StringF1) -> Iterator[Finding]:
    """Yield the errors in the bounds within which the author is asked."""
    if rule.ask_between is not None:
        low, high = rule.ask_between
        if not low <= rule.threshold <= high or low == high:
            message = f"the threshold {rule.threshold:g} is not between {low:g} and {high:g}"
            fix = "write two numbers around the threshold, the smaller one first"
            yield Finding(("verdict", "ask_between"), message, fix)


def _find_secret_errors(config: TaskConfig, rule: Secret) -> Iterator[Finding]:
    """Yield a finding if the rule compares no text, or if no conversation has a secret."""
    text_names = list_text_names(config.output)
    if rule.field not in text_names:
        fix = "add an output of type text"
        if text_names:
            fix = f"name one: {', '.join(text_names)}"
        yield Finding(("verdict", "field"), f'"{rule.field}" is no text of the output', fix)
    if not (config.talk and "{secret}" in (config.talk.system or "")):
        fix = "add a chat to the input, with {secret} in its system"
        yield Finding(("verdict", "type"), "the model has no secret", fix)


def _find_pattern_errors(config: TaskConfig, rule: Pattern) -> Iterator[Finding]:
    """Yield the errors in the field and in the regular expression."""
    text_names = list_text_names(config.output)
    if rule.field not in text_names:
        fix = "add an output of type text"
        if text_names:
            fix = f"name one: {', '.join(text_names)}"
        yield Finding(("verdict", "field"), f'"{rule.field}" is no text of the output', fix)
    try:
        regex.compile(rule.pattern)
    except regex.error as error:
        message = f"the pattern is no regular expression: {error}"
        yield Finding(("verdict", "pattern"), message, "correct it, or put it in single quotes")


def _find_criteria_errors(config: TaskConfig, rule: ByCriteria) -> Iterator[Finding]:
    """Yield a finding for each part of the configuration that keeps criteria from deciding."""
    fields = [field for field in config.input if field.type == "criteria"]
    location: Loc = ("verdict", "field")
    if rule.field not in [field.name for field in fields]:
        names = [field.name for field in fields]
        fix = suggest_nearest(rule.field, names) if names else "add a field of type criteria"
        yield Finding(location, f'"{rule.field}" is no criteria field of the input', fix)
    for field in fields:
        if field.name == rule.field and (field.when is not None or not field.required):
            location = ("input", config.input.index(field))
            fix = "remove when and required: the verdict needs the criteria every time"
            yield Finding(location, "an example without criteria has no verdict", fix)
    if not config.has_free_answers:
        message = f"criteria are for answers in words, and models answer with {config.answer_field}"
        yield Finding(("verdict", "type"), message, "answer with a field of type long_text")
    # Every threshold would say the same, so one that is written is a misunderstanding.
    if rule.score == "all" and "threshold" in rule.model_fields_set:
        message = "with `score: all` an answer has all points or none"
        yield Finding(("verdict", "threshold"), message, "remove threshold")
    yield from _find_judging_errors(config)


def _find_judging_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each setting of judging that does not fit criteria."""
    policy = config.validation
    if policy.mode == "label":
        message = "judges say of each criterion whether it is met, and choose no label"
        yield Finding(("validation", "mode"), message, "write `mode: verdict`")
    for key in ("answers", "asks"):
        if getattr(policy, key) is not None:
            message = "the answers to a criterion are met, not met and cannot tell"
            yield Finding(("validation", key), message, f"remove {key}")
    if policy.steps is not None:
        message = "judges of criteria judge the whole answer, and no step of a conversation"
        yield Finding(("validation", "steps"), message, "remove steps")
    # The metrics compare with a right answer, and criteria are none.
    if config.answer_field not in config.target_fields and not policy.corrections:
        message = (
            f"{config.metrics.main} compares with a right answer, and where the model fails nobody "
            "gives one"
        )
        fix = "write `corrections: true`, or let authors write the answer as a field of the input"
        yield Finding(("validation",), message, fix)


def find_decide_errors(config: TaskConfig, rule: Decide) -> Iterator[Finding]:
    """Yield a finding for each setting with which no key can tell whether people were right."""
    names = [field.name for field in config.input if field.type in DECIDED_TYPES]
    for index, name in enumerate(rule.fields):
        location: Loc = ("verdict", "fields", index)
        if name not in names:
            fix = suggest_nearest(name, names) if names else "add a multiclass field to the input"
            yield Finding(location, f'"{name}" is no choice or number of the input', fix)
        elif name in rule.fields[:index]:
            yield Finding(location, "a field is named twice", "name it once")
        elif not (field := config.get_component(name)).required or field.when is not None:
            message = "who leaves the answer out has decided nothing"
            yield Finding(location, message, f"remove when and required from {name}")
    if config.goal.field is not None:
        message = "a drawn label would tell people what to answer"
        yield Finding(("goal", "field"), message, "remove field")
    # Of several answers to one case, nobody could say which is the final one.
    if config.limits.tries_per_context != 1:
        message = "people decide once about each case"
        yield Finding(("limits",), message, "write `tries_per_context: 1`")


DECIDED_TYPES = ("multiclass", "number", "slider")
"""The types of final answers: those whose values are equal or not."""
RULE_CHECKS: Mapping[str, Callable[[TaskConfig, Any], Iterator[Finding]]] = {
    "pattern": _find_pattern_errors,
    "secret": _find_secret_errors,
    "criteria": _find_criteria_errors,
}
"""The checks of the rules that compare the model's answer with no field of the author."""
