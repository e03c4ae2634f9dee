"""Whether the parts of a configuration fit together: what no single part can know."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import regex

from tasks.config.components import (
    COMMON_KEYS,
    FIELD_TYPES,
    OUTCOMES,
    Component,
    When,
    list_names,
    map_by_name,
)
from tasks.config.label_checks import check_alike_labels, check_labels
from tasks.config.parsing import Finding, Loc, locate_inside, suggest_nearest
from tasks.config.schema import CORRECTION_FIELD, ShownExample, TaskConfig
from tasks.config.score_checks import (
    check_group_terms,
    check_groups,
    check_scores,
    check_unique,
    find_unfit_metrics,
)
from tasks.config.values import build_missing_message, check_value
from tasks.config.verdicts import Pattern, Secret, StringF1

# Fields of the write form, keys of context and data files.
RESERVED_NAMES = (
    "assignment", "attempt_key", "csrfmiddlewaretoken", "goal", "id", "input_id", "metadata",
    "parent", "tag", "tags", "uid",
)  # fmt: skip
MEDIA_PARTS = ("alt", "file", "now")  # in the form, and in files of contexts
PLACEHOLDER_PATTERN = re.compile(r"\{([^{}]*)\}")

Group = tuple[Loc, tuple[Component, ...]]


def find_contradictions(config: TaskConfig) -> tuple[Finding, ...]:
    """Return every contradiction in the configuration; empty if the configuration is valid."""
    contradictions: list[Finding] = []
    # All findings at once, so that an owner does not correct them one after the other.
    for check in _CHECKS:
        contradictions += check(config)
    if not contradictions:  # these make sense only of sound fields
        contradictions += _check_training_rows(config)
        contradictions += _check_examples(config)
    return tuple(contradictions)


def _group_components(config: TaskConfig) -> tuple[Group, ...]:
    return (
        (("context",), config.context),
        (("input",), config.input),
        (("output",), config.output),
        (("metadata", "create"), config.metadata.create),
        (("metadata", "validate"), config.metadata.validate),
    )


def _iter_components(config: TaskConfig) -> Iterator[tuple[Loc, Component]]:
    for loc, group in _group_components(config):
        for index, component in enumerate(group):
            yield locate_inside(loc, index), component


def _check_names(config: TaskConfig) -> Iterator[Finding]:
    """Yield the field names that are invalid or used twice."""
    yield from _check_repeated_names(config)
    # A span of the input is stored as its text, with its start under a name of its own.
    starts = [f"{component.name}_start" for component in config.input if component.type == "span"]
    for index, component in enumerate(config.input):
        if component.name in starts:
            message = "a span's start is stored under this name"
            yield Finding(("input", index, "name"), message, "choose a name without _start")
    media = {}
    for name in config.media_fields:
        for suffix in MEDIA_PARTS:
            media[f"{name}_{suffix}"] = name
    for loc, component in _iter_components(config):
        if component.name in media:
            message = f"a part of {media[component.name]} is sent under this name"
            yield Finding(locate_inside(loc, "name"), message, "choose another name")


def _check_repeated_names(config: TaskConfig) -> Iterator[Finding]:
    """Yield names that are reserved by the platform or belong to another field."""
    homes: dict[str, list[str]] = {}
    for loc, component in _iter_components(config):
        name, home = component.name, ".".join(map(str, loc[:-1]))
        at = locate_inside(loc, "name")
        if name in RESERVED_NAMES:
            yield Finding(at, f'the platform uses the name "{name}" itself', "choose another name")
        earlier_homes = homes.setdefault(name, [])
        # Input and output may share a name: then people and models answer the same field.
        clash = [other for other in earlier_homes if {home, other} != {"input", "output"}]
        if clash:
            message = f'"{name}" is there already, in {clash[0]}'
            yield Finding(at, message, "give each field its own name")
        earlier_homes.append(home)


def _check_components(config: TaskConfig) -> Iterator[Finding]:
    groups = {"context": config.context, "input": config.input, "output": config.output}
    for loc, component in _iter_components(config):
        yield from check_field(loc, component)
        yield from component.kind.findings(loc, component, groups)


def check_field(loc: Loc, component: Component) -> Iterator[Finding]:
    """Yield the contradictions within one field."""
    yield from _check_keys(loc, component)
    yield from check_labels(loc, component)
    yield from _check_ranges(loc, component)


def _check_keys(loc: Loc, component: Component) -> Iterator[Finding]:
    allowed = set(COMMON_KEYS + component.kind.keys)
    for key in sorted(component.model_fields_set - allowed):
        kinds = ", ".join(kind.name for kind in FIELD_TYPES.values() if key in kind.keys)
        fix = f"remove it, or change the type to one of: {kinds}"
        yield Finding(
            locate_inside(loc, key), f"a field of type {component.type} has no {key}", fix
        )


def _check_ranges(loc: Loc, component: Component) -> Iterator[Finding]:
    min_length, max_length = component.min_length, component.max_length
    fix = "swap or change them"
    if min_length is not None and max_length is not None and min_length > max_length:
        yield Finding(
            locate_inside(loc, "min_length"),
            f"{min_length} is above max_length ({max_length})",
            fix,
        )
    if component.counter and max_length is None:
        yield Finding(locate_inside(loc, "counter"), "a counter needs a limit", "add max_length")
    minimum, maximum = component.minimum, component.maximum
    if minimum is not None and maximum is not None and minimum >= maximum:
        yield Finding(
            locate_inside(loc, "minimum"), f"{minimum:g} is not below maximum ({maximum:g})", fix
        )


def _check_outputs(config: TaskConfig) -> Iterator[Finding]:
    # A model that reads nothing answers the same to everybody.
    if not config.model_fields:
        fix = "add a text to the context or the input that is no output"
        yield Finding(("input",), "the model is given nothing to read", fix)
    inputs = map_by_name(config.input)
    for index, output in enumerate(config.output):
        loc: Loc = ("output", index)
        target = inputs.get(output.name)
        # An output of the model only. It needs labels itself, as there is no input to take them
        # from.
        if target is None:
            if "labels" in output.kind.keys and len(output.labels) < 2:
                yield Finding(loc, f"a {output.type} needs labels", "give at least two labels")
            continue
        if target.type != output.type:
            fix = f"write `type: {target.type}`, or give the output another name"
            yield Finding(
                locate_inside(loc, "type"), f"the input {output.name} is a {target.type}", fix
            )
        elif output.labels and output.values != target.values:
            fix = "remove labels here; those of the input count"
            yield Finding(
                locate_inside(loc, "labels"), "these are not the labels of the input", fix
            )
        # The verdict compares it in every example, so it may never be empty.
        if target.when is not None or not target.required:
            at = ("input", config.input.index(target))
            fix = "remove when and required: the verdict compares this field every time"
            yield Finding(at, "a target field must always be filled", fix)
    # Probabilities say how sure a model is, and are no answer to compare.
    if all(output.type == "prob" for output in config.output):
        yield Finding(("output",), "no output is an answer", "add one that is not a prob")


def _check_conditions(config: TaskConfig) -> Iterator[Finding]:
    questions_above: list[Component] = []
    for loc, component in _iter_components(config):
        place = loc[1] if loc[0] == "metadata" else loc[0]
        if component.when is not None:
            yield from _check_condition(
                locate_inside(loc, "when"), str(place), component, questions_above
            )
        # Only fields that are asked before this one can decide whether it is asked.
        if place in ("input", "create", "validate"):
            questions_above.append(component)


def _check_condition(
    at: Loc, place: str, component: Component, questions_above: list[Component]
) -> Iterator[Finding]:
    allowed_keys = {
        "input": ("field",),
        "create": ("outcome", "field"),
        "validate": ("outcome", "verdict", "field"),
    }.get(place, ())
    condition = component.when
    assert condition is not None
    set_keys = [key for key in _CONDITION_EXAMPLES if getattr(condition, key) is not None]
    fix = f"write {' or '.join(_CONDITION_EXAMPLES[key] for key in allowed_keys)}"
    if not allowed_keys:
        yield Finding(at, f"a field of the {place} has no condition", "remove when")
    elif len(set_keys) != 1 or (condition.equals is None) != (condition.field is None):
        yield Finding(at, "a condition is one question", fix)
    elif set_keys[0] not in allowed_keys:
        yield Finding(
            locate_inside(at, set_keys[0]), f"the {set_keys[0]} is not known by then", fix
        )
    elif condition.field is not None:
        yield from _check_condition_on_field(at, condition, _map_choice_fields(questions_above))


def _check_condition_on_field(
    at: Loc, condition: When, choices: Mapping[str, Component]
) -> Iterator[Finding]:
    """Yield a finding if a condition names no earlier field, or a label that the field lacks."""
    field = str(condition.field)
    if field not in choices:
        message = f'"{field}" is not a multiclass field above'
        fix = f"name a multiclass field above it: {', '.join(choices) or 'there is none'}"
        yield Finding(locate_inside(at, "field"), message, fix)
    elif condition.equals not in choices[field].values:
        fix = suggest_nearest(str(condition.equals), choices[field].values)
        yield Finding(
            locate_inside(at, "equals"), f'{field} has no label "{condition.equals}"', fix
        )


def _map_choice_fields(components: Iterable[Component]) -> dict[str, Component]:
    """Return, by name, the fields whose value is a single label."""
    return {c.name: c for c in components if c.type == "multiclass"}


def _list_text_names(components: Iterable[Component]) -> list[str]:
    """Return the names of the free-text fields."""
    return [c.name for c in components if c.kind.is_text]


_CONDITION_EXAMPLES = {
    "outcome": f"{{outcome: {'|'.join(OUTCOMES)}}}",
    "verdict": "{verdict: correct|incorrect|flagged}",
    "field": "{field: NAME, equals: LABEL}",
}


def _check_goal(config: TaskConfig) -> Iterator[Finding]:
    field, at = config.goal.field, ("goal", "text")
    places = PLACEHOLDER_PATTERN.findall(config.goal.text)
    for name in sorted({name for name in places if name != field}):
        fix = "set goal.field, or write the words out"
        if field:
            fix = f"write {{{field}}}"
        yield Finding(at, f'"{{{name}}}" is not the goal\'s field', fix)
    if field is None:
        return
    # Without a place nobody would read the label, and two are no sentence.
    if places.count(field) != 1:
        yield Finding(at, "the drawn label has no place, or two", f"write {{{field}}} once")
    choices = _map_choice_fields(config.input)
    if field not in choices:
        fix = f"name one: {', '.join(choices)}" if choices else "set it to null"
        yield Finding(("goal", "field"), f'"{field}" is not a multiclass field of the input', fix)
    elif choices[field].when is not None:
        yield Finding(("goal", "field"), f"{field} is asked only sometimes", "remove its when")


def _check_verdict(config: TaskConfig) -> Iterator[Finding]:
    rule, targets = config.verdict, config.target_fields
    fix = _advise_target(targets)
    if rule.type == "exact_match":
        for index, field in enumerate(rule.fields):
            if field not in targets:
                message = f'"{field}" is not both input and output'
                yield Finding(("verdict", "fields", index), message, fix)
        at = ("verdict", "fields")
        yield from check_unique(at, rule.fields, "a field is named twice", "name it once")
    elif rule.type == "pattern":
        yield from _check_pattern(config, rule)
    elif rule.type == "secret":
        yield from _check_secret(config, rule)
    elif rule.type != "ask_user" and rule.field not in targets:
        yield Finding(("verdict", "field"), f'"{rule.field}" is not both input and output', fix)
    elif rule.type != "ask_user":
        yield from _check_comparable(config.component(rule.field), rule.type)
    if rule.type == "string_f1":
        yield from _check_ask_between(rule)
    if config.is_decided_by_author and config.talk is None:
        at, message = ("verdict", "marked_is_wrong"), "only in a conversation an answer is marked"
        yield Finding(at, message, "remove marked_is_wrong")


def _advise_target(targets: tuple[str, ...]) -> str:
    if targets:
        return f"name a target field: {', '.join(targets)}"
    return "use {type: ask_user}"


def _check_comparable(field: Component, rule: str) -> Iterator[Finding]:
    """Yield a finding if the rule cannot compare values of this field's type."""
    if rule in ("rank", "spans_f1"):
        if field.kind.rule(field) != rule:
            message = f"{field.name}, a field of type {field.type}, cannot be compared by {rule}"
            fit = field.kind.rule(field) or "exact_match"
            yield Finding(("verdict", "type"), message, f"use {fit}")
    elif not (field.kind.is_text or field.type == "span"):
        yield Finding(("verdict", "field"), f"{field.name} is no text", "use {type: exact_match}")


def _check_ask_between(rule: StringF1) -> Iterator[Finding]:
    if rule.ask_between is not None:
        low, high = rule.ask_between
        if not low <= rule.threshold <= high or low == high:
            message = f"the threshold {rule.threshold:g} is not between {low:g} and {high:g}"
            fix = "write two numbers around the threshold, the smaller one first"
            yield Finding(("verdict", "ask_between"), message, fix)


def _check_secret(config: TaskConfig, rule: Secret) -> Iterator[Finding]:
    texts = _list_text_names(config.output)
    if rule.field not in texts:
        fix = "add an output of type text"
        if texts:
            fix = f"name one: {', '.join(texts)}"
        yield Finding(("verdict", "field"), f'"{rule.field}" is no text of the output', fix)
    if not (config.talk and "{secret}" in (config.talk.system or "")):
        fix = "add a chat to the input, with {secret} in its system"
        yield Finding(("verdict", "type"), "the model is told no secret", fix)


def _check_pattern(config: TaskConfig, rule: Pattern) -> Iterator[Finding]:
    texts = _list_text_names(config.output)
    if rule.field not in texts:
        fix = "add an output of type text"
        if texts:
            fix = f"name one: {', '.join(texts)}"
        yield Finding(("verdict", "field"), f'"{rule.field}" is no text of the output', fix)
    try:
        regex.compile(rule.pattern)
    except regex.error as error:
        message = f"the pattern is no regular expression: {error}"
        yield Finding(("verdict", "pattern"), message, "mend it, or put it in single quotes")


def _check_validation(config: TaskConfig) -> Iterator[Finding]:
    votes, at = config.validation.votes, ("validation", "votes")
    # The other rules count shares of a number of votes, which must be known.
    if votes.rule != "n-equal" and votes.of is None:
        message = f"the rule {votes.rule} needs the number of votes"
        yield Finding(at, message, "add of, such as of: 5")
    # Such an example would never be decided.
    elif votes.of is not None and votes.needed > votes.of:
        fix = "lower needed or raise of"
        yield Finding(
            locate_inside(at, "needed"), f"{votes.needed} of {votes.of} votes cannot be", fix
        )
    elif votes.rule in ("strict", "plurality") and votes.needed != (votes.of or 0) // 2 + 1:
        fix = f"remove needed; the rule {votes.rule} goes by of alone"
        yield Finding(locate_inside(at, "needed"), "needed does not fit the rule", fix)
    if config.validation.corrections:
        yield from _check_corrections(config)
    types = {config.component(name).type for name in config.target_fields}
    if config.validation.mode == "label" and "multiclass" not in types:
        message = "there is no target field with labels for validators to choose"
        yield Finding(("validation", "mode"), message, "write `mode: verdict`")


def _check_judges(config: TaskConfig) -> Iterator[Finding]:
    """Yield the settings that would show judges too much or too little."""
    is_label = config.validation.mode == "label"
    # In mode label judges choose a label, so there is no question with two answers.
    for key in ("answers", "asks") if is_label else ():
        if getattr(config.validation, key):
            fix = f"remove {key}, or write `mode: verdict`"
            yield Finding(("validation", key), "judges choose among labels", fix)
    if config.validation.asks == "attempt" and config.verdict.type not in ("pattern", "secret"):
        at, message = ("validation", "asks"), "no rule decides whether the model was fooled"
        yield Finding(at, message, "write `asks: answer`, or the verdict pattern or secret")
    is_text = is_label or config.talk is not None
    judged_fields = config.target_fields
    if is_text:
        judged_fields = (config.text_field,)
    for loc, field in _iter_components(config):
        if loc[0] != "input":
            for key in field.model_fields_set & {"judges_see", "judges_label"}:
                yield Finding(locate_inside(loc, key), "this is of the input only", f"remove {key}")
        # The author's label, or a field that is asked because of it.
        elif field.judges_see and is_label and (field.when or field.name in config.target_fields):
            message = "it would tell the label that judges choose"
            yield Finding(locate_inside(loc, "judges_see"), message, "remove judges_see")
        # Judges cannot judge what they do not see.
        elif field.judges_see is False and field.name in judged_fields:
            yield Finding(
                locate_inside(loc, "judges_see"), "this is what judges judge", "remove judges_see"
            )


def _check_corrections(config: TaskConfig) -> Iterator[Finding]:
    answer, at = config.component(config.answer_field), ("validation", "corrections")
    if not answer.kind.is_text:
        message = f"{answer.name}, a field of type {answer.type}, is no free answer"
        yield Finding(at, message, "remove corrections; they are for text and long_text")
    if any(component.name == CORRECTION_FIELD for _, component in _iter_components(config)):
        yield Finding(at, f'a field is called "{CORRECTION_FIELD}" already', "rename the field")


def _check_training_rows(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding if the task does not suit the model that learns from submitted rows."""
    if config.training_rows is None:
        return
    model_components = [config.component(name) for name in config.model_fields]
    answer = config.component(config.answer_field).type
    # What the site's own training can read.
    are_texts = len(model_components) <= 2 and all(
        component.kind.is_text for component in model_components
    )
    is_picture = [component.type for component in model_components] == ["image"]
    if answer != "multiclass" or not (are_texts or is_picture):
        message = "what learns from rows reads one or two texts, or a picture, and chooses a label"
        yield Finding(("training_rows",), message, "remove training_rows")


def _check_support(config: TaskConfig) -> Iterator[Finding]:
    field = None
    if config.support:
        field = config.support.prompt_field
    texts = _list_text_names(config.context)
    if field is not None and field not in texts:
        at = ("support", "prompt_field")
        yield Finding(at, f'"{field}" is not a text of the context', suggest_nearest(field, texts))
    if config.support and not _list_text_names(config.input):
        yield Finding(("support",), "there is no text to write in", "add a long_text to the input")
    if config.support and config.support.challenges:
        at = ("support", "challenges")
        names, fix = (
            [challenge.name for challenge in config.support.challenges],
            "give each its own name",
        )
        yield from check_unique(at, names, '"{}" is there twice', fix)
        if any(c.name == "challenge" for c in config.context + config.input):
            yield Finding(at, "a field is called challenge, as their slice is", "rename the field")


def _check_examples(config: TaskConfig) -> Iterator[Finding]:
    for kind, examples in (("good", config.examples.good), ("bad", config.examples.bad)):
        for index, example in enumerate(examples):
            yield from _check_example(("examples", kind, index), example, config, kind == "good")


def _check_example(
    loc: Loc, example: ShownExample, config: TaskConfig, is_good: bool
) -> Iterator[Finding]:
    for section, components in (("context", config.context), ("input", config.input)):
        values: Mapping[str, Any] = getattr(example, section)
        names = list_names(components)
        for name in values:
            if name not in names:
                yield Finding(
                    locate_inside(loc, section, name),
                    f'"{name}" is no field',
                    suggest_nearest(name, names),
                )
        for component in components:
            value = component.kind.stored(component, values.get(component.name), example.context)
            at = locate_inside(loc, section, component.name)
            # A bad example may break limits on purpose, but not use a label that does not exist.
            if value is not None and (is_good or "labels" in component.kind.keys):
                for message in check_value(component, value, example.context):
                    yield Finding(at, message, "change the example")
            elif value is None and is_good and _is_asked(component, example.input):
                yield Finding(
                    locate_inside(loc, section),
                    build_missing_message(component),
                    "complete the example",
                )


def _is_asked(component: Component, inputs: Mapping[str, Any]) -> bool:
    return component.required and (component.when is None or component.when.holds(inputs))


_CHECKS: tuple[Callable[[TaskConfig], Iterator[Finding]], ...] = (
    _check_names,
    _check_components,
    _check_outputs,
    _check_conditions,
    _check_goal,
    _check_verdict,
    check_scores,
    check_group_terms,
    check_groups,
    _check_validation,
    _check_judges,
    _check_support,
)
"""In the order in which their findings are listed."""


def find_unsupported_fields(config: TaskConfig) -> Iterator[Finding]:
    """Yield the fields that pages, judges or models do not support yet.

    `load_config` accepts them so that stored tasks can be read, but new ones are refused.
    """
    groups = {"context": config.context, "input": config.input, "output": config.output}
    for loc, component in _iter_components(config):
        place = str(loc[0])
        if not component.works_in(place):
            message = f"a field of type {component.type} does not work in the {place} yet"
            yield Finding(
                locate_inside(loc, "type"),
                message,
                f"use one of: {', '.join(list_types_for(place))}",
            )
        else:
            yield from component.kind.unfinished(loc, component, groups)
        yield from check_alike_labels(loc, component)
    yield from _find_unfit_outputs(config)
    yield from _find_unfit_rule(config)
    yield from _find_unfit_talk(config)
    yield from find_unfit_metrics(config)


def _find_unfit_outputs(config: TaskConfig) -> Iterator[Finding]:
    """Yield additional answers, which no target is asked for, and probabilities used as answers."""
    answer, *other_names = [
        component.name for component in config.output if component.type != "prob"
    ] or [""]
    for index, output in enumerate(config.output):
        if output.name in other_names:
            message, fix = f"a model gives one answer, {answer}", f"remove {output.name}"
            yield Finding(("output", index), message, fix)
        elif output.type == "prob" and output.name in config.target_fields:
            message = f"{output.name} says how sure a model is, and is no answer to compare"
            yield Finding(("output", index), message, f"remove {output.name} here or in the input")


def _find_unfit_rule(config: TaskConfig) -> Iterator[Finding]:
    """Yield the fields that `exact_match` compares although their values are seldom equal."""
    if config.verdict.type != "exact_match":
        return
    for index, name in enumerate(config.verdict.fields):
        field = config.component(name)
        if rule := field.kind.rule(field):
            message = f"{name}, a field of type {field.type}, is seldom equal"
            fix = f"use {{type: {rule}, field: {name}}}"
            yield Finding(("verdict", "fields", index), message, fix)


def _find_unfit_talk(config: TaskConfig) -> Iterator[Finding]:
    """Yield the settings that do not work if the input is a conversation with the model."""
    # A conversation that is also an output is refused as an output, so nothing is said here.
    if config.talk is None or config.target_fields == (config.talk.name,):
        return  # the latter is refused as an output
    rule, support = config.verdict.type, config.support
    if rule not in ("ask_user", "pattern", "secret"):
        message = f"in a conversation nobody writes the answer that {rule} compares"
        yield Finding(("verdict", "type"), message, "use ask_user, pattern or secret")
    for index, component in enumerate(config.context):
        if component.is_media:
            message = f"a conversation is about texts, not about a field of type {component.type}"
            yield Finding(("context", index, "type"), message, f"remove {component.name}")
    for key in ("prompt_field", "minimal_edit", "suggestions"):
        if support and getattr(support, key):
            yield Finding(("support", key), f"a conversation has no {key}", f"remove {key}")


def list_types_for(place: str) -> list[str]:
    """Return the names of the field types that work in a place, such as "input"."""
    return [name for name, kind in FIELD_TYPES.items() if place in kind.places]
