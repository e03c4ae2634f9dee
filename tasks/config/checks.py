"""Check whether the parts of a configuration fit together."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tasks.config.components import (
    COMMON_KEYS,
    FIELD_TYPES,
    OUTCOMES,
    Component,
    Condition,
    list_names,
    map_by_name,
)
from tasks.config.judging_checks import find_judging_errors
from tasks.config.label_checks import find_alike_labels, find_label_errors
from tasks.config.parsing import Finding, Loc, locate_inside, suggest_nearest
from tasks.config.schema import CORRECTION_FIELD, ShownExample, TaskConfig
from tasks.config.score_checks import (
    find_group_errors,
    find_group_term_errors,
    find_repetitions,
    find_score_errors,
    find_unsuitable_metrics,
)
from tasks.config.values import build_missing_message, find_value_errors
from tasks.config.verdict_checks import (
    RULE_CHECKS,
    find_ask_between_errors,
    find_decide_errors,
    list_text_names,
)

# Fields of the write form, keys of context and data files.
RESERVED_NAMES = (
    "assignment", "attempt_key", "csrfmiddlewaretoken", "goal", "id", "input_id", "metadata",
    "parent", "tag", "tags", "uid",
)  # fmt: skip
MEDIA_SUFFIXES = ("alt", "file", "now")  # in the form, and in files of contexts
PLACEHOLDER_PATTERN = re.compile(r"\{([^{}]*)\}")

Group = tuple[Loc, tuple[Component, ...]]


def find_contradictions(config: TaskConfig) -> tuple[Finding, ...]:
    """Return all contradictions in the configuration; empty if it is valid."""
    contradictions: list[Finding] = []
    # All findings at once, so that an owner does not correct them one after the other.
    for check in _CHECKS:
        contradictions += check(config)
    if not contradictions:  # these make sense only of sound fields
        contradictions += _find_training_row_errors(config)
        contradictions += _find_example_errors(config)
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


def _find_name_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each name that is reserved or used twice, also by a part of a field."""
    yield from _find_repeated_names(config)
    # A span of the input is stored as its text, with its start under a name of its own.
    starts = [f"{component.name}_start" for component in config.input if component.type == "span"]
    for index, component in enumerate(config.input):
        if component.name in starts:
            message = "a span's start is stored under this name"
            yield Finding(("input", index, "name"), message, "choose a name without _start")
    fields_by_part = {}
    for name in config.media_fields:
        for suffix in MEDIA_SUFFIXES:
            fields_by_part[f"{name}_{suffix}"] = name
    for loc, component in _iter_components(config):
        if component.name in fields_by_part:
            message = f"a part of {fields_by_part[component.name]} is sent under this name"
            yield Finding(locate_inside(loc, "name"), message, "choose another name")


def _find_repeated_names(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each name that the platform reserves or that another field has."""
    sections_by_name: dict[str, list[str]] = {}
    for loc, component in _iter_components(config):
        name, section = component.name, ".".join(map(str, loc[:-1]))
        location = locate_inside(loc, "name")
        if name in RESERVED_NAMES:
            yield Finding(
                location, f'the platform uses the name "{name}" itself', "choose another name"
            )
        earlier_sections = sections_by_name.setdefault(name, [])
        # Input and output may share a name: then people and models answer the same field.
        clashing_sections = [
            earlier for earlier in earlier_sections if {section, earlier} != {"input", "output"}
        ]
        if clashing_sections:
            message = f'"{name}" is there already, in {clashing_sections[0]}'
            yield Finding(location, message, "give each field its own name")
        earlier_sections.append(section)


def _find_component_errors(config: TaskConfig) -> Iterator[Finding]:
    groups = {"context": config.context, "input": config.input, "output": config.output}
    for loc, component in _iter_components(config):
        yield from find_field_errors(loc, component)
        yield from component.kind.find_contradictions(loc, component, groups)


def find_field_errors(loc: Loc, component: Component) -> Iterator[Finding]:
    """Yield the contradictions within a single field."""
    yield from _find_key_errors(loc, component)
    yield from find_label_errors(loc, component)
    yield from _find_range_errors(loc, component)


def _find_key_errors(loc: Loc, component: Component) -> Iterator[Finding]:
    allowed = set(COMMON_KEYS + component.kind.keys)
    for key in sorted(component.model_fields_set - allowed):
        kinds = ", ".join(kind.name for kind in FIELD_TYPES.values() if key in kind.keys)
        fix = f"remove it, or change the type to one of: {kinds}"
        yield Finding(
            locate_inside(loc, key), f"a field of type {component.type} has no {key}", fix
        )


def _find_range_errors(loc: Loc, component: Component) -> Iterator[Finding]:
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


def _find_output_errors(config: TaskConfig) -> Iterator[Finding]:
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
            location = ("input", config.input.index(target))
            fix = "remove when and required: the verdict compares this field every time"
            yield Finding(location, "a target field must always be filled", fix)
    # Probabilities say how sure a model is, and are no answer to compare.
    if all(output.type == "prob" for output in config.output):
        yield Finding(("output",), "no output is an answer", "add one that is not a prob")


def _find_condition_errors(config: TaskConfig) -> Iterator[Finding]:
    questions_above: list[Component] = []
    for loc, component in _iter_components(config):
        section = loc[1] if loc[0] == "metadata" else loc[0]
        if component.when is not None:
            yield from _find_errors_in_condition(
                locate_inside(loc, "when"), str(section), component, questions_above
            )
        # Only fields that are asked before this one can decide whether it is asked.
        if section in ("input", "create", "validate"):
            questions_above.append(component)


def _find_errors_in_condition(
    location: Loc, section: str, component: Component, questions_above: list[Component]
) -> Iterator[Finding]:
    allowed_keys = {
        "input": ("field",),
        "create": ("outcome", "field"),
        "validate": ("outcome", "verdict", "field"),
    }.get(section, ())
    condition = component.when
    assert condition is not None
    set_keys = [key for key in _CONDITION_EXAMPLES if getattr(condition, key) is not None]
    fix = f"write {' or '.join(_CONDITION_EXAMPLES[key] for key in allowed_keys)}"
    if not allowed_keys:
        yield Finding(location, f"a field of the {section} has no condition", "remove when")
    elif len(set_keys) != 1 or (condition.equals is None) != (condition.field is None):
        yield Finding(location, "a condition is one question", fix)
    elif set_keys[0] not in allowed_keys:
        yield Finding(
            locate_inside(location, set_keys[0]), f"the {set_keys[0]} is not known by then", fix
        )
    elif condition.field is not None:
        yield from _find_condition_field_errors(
            location, condition, _map_choice_fields(questions_above)
        )


def _find_condition_field_errors(
    location: Loc, condition: Condition, choices: Mapping[str, Component]
) -> Iterator[Finding]:
    """Yield a finding if a condition names no earlier choice field, or a label it does not have.

    choices: the earlier multiclass fields by name.
    """
    field = str(condition.field)
    if field not in choices:
        message = f'"{field}" is not a multiclass field above'
        fix = f"name a multiclass field above it: {', '.join(choices) or 'there is none'}"
        yield Finding(locate_inside(location, "field"), message, fix)
    elif condition.equals not in choices[field].values:
        fix = suggest_nearest(str(condition.equals), choices[field].values)
        yield Finding(
            locate_inside(location, "equals"), f'{field} has no label "{condition.equals}"', fix
        )


def _map_choice_fields(components: Iterable[Component]) -> dict[str, Component]:
    """Return the multiclass fields by name."""
    return {component.name: component for component in components if component.type == "multiclass"}


_CONDITION_EXAMPLES = {
    "outcome": f"{{outcome: {'|'.join(OUTCOMES)}}}",
    "verdict": "{verdict: correct|incorrect|flagged}",
    "field": "{field: NAME, equals: LABEL}",
}


def _find_goal_errors(config: TaskConfig) -> Iterator[Finding]:
    field, location = config.goal.field, ("goal", "text")
    placeholders = PLACEHOLDER_PATTERN.findall(config.goal.text)
    for name in sorted({name for name in placeholders if name != field}):
        fix = "set goal.field, or write the words out"
        if field:
            fix = f"write {{{field}}}"
        yield Finding(location, f'"{{{name}}}" is not the goal\'s field', fix)
    if field is None:
        return
    # Without a place nobody would read the label, and two are no sentence.
    if placeholders.count(field) != 1:
        yield Finding(location, "the drawn label has no place, or two", f"write {{{field}}} once")
    choices = _map_choice_fields(config.input)
    if field not in choices:
        fix = f"name one: {', '.join(choices)}" if choices else "set it to null"
        yield Finding(("goal", "field"), f'"{field}" is not a multiclass field of the input', fix)
    elif choices[field].when is not None:
        yield Finding(("goal", "field"), f"{field} is asked only sometimes", "remove its when")


def _find_verdict_errors(config: TaskConfig) -> Iterator[Finding]:
    rule, targets = config.verdict, config.target_fields
    fix = _advise_target(targets)
    if rule.type == "exact_match":
        for index, field in enumerate(rule.fields):
            if field not in targets:
                message = f'"{field}" is not both input and output'
                yield Finding(("verdict", "fields", index), message, fix)
        location = ("verdict", "fields")
        yield from find_repetitions(location, rule.fields, "a field is named twice", "name it once")
    elif rule.type == "decide":
        yield from find_decide_errors(config, rule)
    elif rule.type in RULE_CHECKS:
        yield from RULE_CHECKS[rule.type](config, rule)
    elif rule.type != "ask_user" and rule.field not in targets:
        yield Finding(("verdict", "field"), f'"{rule.field}" is not both input and output', fix)
    elif rule.type != "ask_user":
        yield from _find_incomparable_field(config.get_component(rule.field), rule.type)
    if rule.type == "string_f1":
        yield from find_ask_between_errors(rule)
    if config.is_decided_by_author and config.talk is None:
        location, message = (
            ("verdict", "marked_is_wrong"),
            "only in a conversation an answer is marked",
        )
        yield Finding(location, message, "remove marked_is_wrong")


def _advise_target(targets: tuple[str, ...]) -> str:
    if targets:
        return f"name a target field: {', '.join(targets)}"
    return "use {type: ask_user}"


def _find_incomparable_field(field: Component, rule: str) -> Iterator[Finding]:
    """Yield a finding if the rule cannot compare values of this field's type."""
    if rule in ("rank", "spans_f1"):
        if field.kind.get_verdict_rule(field) != rule:
            message = f"{field.name}, a field of type {field.type}, cannot be compared by {rule}"
            fitting_rule = field.kind.get_verdict_rule(field) or "exact_match"
            yield Finding(("verdict", "type"), message, f"use {fitting_rule}")
    elif not (field.kind.is_text or field.type == "span"):
        yield Finding(("verdict", "field"), f"{field.name} is no text", "use {type: exact_match}")


def _find_judge_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each validation setting that contradicts another or misleads judges."""
    is_label = config.validation.mode == "label"
    # In mode label judges choose a label, so there is no question with two answers.
    for key in ("answers", "asks") if is_label else ():
        if getattr(config.validation, key):
            fix = f"remove {key}, or write `mode: verdict`"
            yield Finding(("validation", key), "judges choose among labels", fix)
    if config.validation.asks == "attempt" and config.verdict.type not in ("pattern", "secret"):
        location, message = ("validation", "asks"), "no rule decides whether the model was fooled"
        yield Finding(location, message, "write `asks: answer`, or the verdict pattern or secret")
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


def _find_correction_errors(config: TaskConfig) -> Iterator[Finding]:
    if not config.validation.corrections:
        return
    answer, location = config.get_component(config.answer_field), ("validation", "corrections")
    if not answer.kind.is_text:
        message = f"{answer.name}, a field of type {answer.type}, is no free answer"
        yield Finding(location, message, "remove corrections; they are for text and long_text")
    if any(component.name == CORRECTION_FIELD for _, component in _iter_components(config)):
        yield Finding(
            location, f'a field is called "{CORRECTION_FIELD}" already', "rename the field"
        )


def _find_training_row_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding if the site cannot train a model on the training rows of this task."""
    if config.training_rows is None:
        return
    model_components = [config.get_component(name) for name in config.model_fields]
    answer = config.get_component(config.answer_field).type
    # What the site's own training can read.
    has_only_texts = len(model_components) <= 2 and all(
        component.kind.is_text for component in model_components
    )
    has_only_picture = [component.type for component in model_components] == ["image"]
    if answer != "multiclass" or not (has_only_texts or has_only_picture):
        message = "what learns from rows reads one or two texts, or a picture, and chooses a label"
        yield Finding(("training_rows",), message, "remove training_rows")


def _find_support_errors(config: TaskConfig) -> Iterator[Finding]:
    field = None
    if config.support:
        field = config.support.prompt_field
    text_names = list_text_names(config.context)
    if field is not None and field not in text_names:
        location = ("support", "prompt_field")
        yield Finding(
            location, f'"{field}" is not a text of the context', suggest_nearest(field, text_names)
        )
    if config.support and not list_text_names(config.input):
        yield Finding(("support",), "there is no text to write in", "add a long_text to the input")
    if config.support and config.support.challenges:
        location = ("support", "challenges")
        names, fix = (
            [challenge.name for challenge in config.support.challenges],
            "give each its own name",
        )
        yield from find_repetitions(location, names, '"{}" is there twice', fix)
        if any(component.name == "challenge" for component in config.context + config.input):
            yield Finding(
                location, "a field is called challenge, as their slice is", "rename the field"
            )


def _find_example_errors(config: TaskConfig) -> Iterator[Finding]:
    for kind, examples in (("good", config.examples.good), ("bad", config.examples.bad)):
        for index, example in enumerate(examples):
            yield from _find_bad_values(("examples", kind, index), example, config, kind == "good")


def _find_bad_values(
    loc: Loc, example: ShownExample, config: TaskConfig, is_good: bool
) -> Iterator[Finding]:
    if example.tactic and not is_good:
        yield Finding(
            locate_inside(loc, "tactic"), "only good examples are offered to try", "remove it"
        )
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
            value = component.kind.parse_typed_value(
                component, values.get(component.name), example.context
            )
            location = locate_inside(loc, section, component.name)
            # A bad example may break limits on purpose, but not use a label that does not exist.
            if value is not None and (is_good or "labels" in component.kind.keys):
                for message in find_value_errors(component, value, example.context):
                    yield Finding(location, message, "change the example")
            elif value is None and is_good and _is_asked(component, example.input):
                yield Finding(
                    locate_inside(loc, section),
                    build_missing_message(component),
                    "complete the example",
                )


def _is_asked(component: Component, inputs: Mapping[str, Any]) -> bool:
    return component.required and (component.when is None or component.when.is_met(inputs))


_CHECKS: tuple[Callable[[TaskConfig], Iterator[Finding]], ...] = (
    _find_name_errors,
    _find_component_errors,
    _find_output_errors,
    _find_condition_errors,
    _find_goal_errors,
    _find_verdict_errors,
    find_score_errors,
    find_group_term_errors,
    find_group_errors,
    find_judging_errors,
    _find_correction_errors,
    _find_judge_errors,
    _find_support_errors,
)
"""The checks, in the order in which their findings are listed."""


def find_unsupported_fields(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each part of the configuration that is not supported yet.

    Pages, judges or models cannot handle these parts. `load_config` accepts them, so that stored
    tasks can be read, but they are refused in new tasks.
    """
    groups = {"context": config.context, "input": config.input, "output": config.output}
    for loc, component in _iter_components(config):
        section = str(loc[0])
        if not component.is_allowed_in(section):
            message = f"a field of type {component.type} does not work in the {section} yet"
            yield Finding(
                locate_inside(loc, "type"),
                message,
                f"use one of: {', '.join(list_types_for(section))}",
            )
        else:
            yield from component.kind.find_unsupported_settings(loc, component, groups)
        yield from find_alike_labels(loc, component)
    yield from _find_unfit_outputs(config)
    yield from _find_unfit_rule(config)
    yield from _find_unfit_conversation(config)
    yield from find_unsuitable_metrics(config)


def _find_unfit_outputs(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each output that no model can give, and for probabilities as answers."""
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
    """Yield a finding for each field that `exact_match` compares, but whose values rarely agree."""
    if config.verdict.type != "exact_match":
        return
    for index, name in enumerate(config.verdict.fields):
        field = config.get_component(name)
        if rule := field.kind.get_verdict_rule(field):
            message = f"{name}, a field of type {field.type}, is seldom equal"
            fix = f"use {{type: {rule}, field: {name}}}"
            yield Finding(("verdict", "fields", index), message, fix)


def _find_unfit_conversation(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each setting that does not work if people talk to the model."""
    # A conversation that is also an output is refused as an output, so nothing is said here.
    if config.talk is None or config.target_fields == (config.talk.name,):
        return  # the latter is refused as an output
    rule, support = config.verdict.type, config.support
    if rule not in ("ask_user", "criteria", "decide", "pattern", "secret"):
        message = f"in a conversation nobody writes the answer that {rule} compares"
        yield Finding(("verdict", "type"), message, "use ask_user, criteria, pattern or secret")
    for index, component in enumerate(config.context):
        if component.is_media:
            message = f"a conversation is about texts, not about a field of type {component.type}"
            yield Finding(("context", index, "type"), message, f"remove {component.name}")
    for key in ("prompt_field", "minimal_edit", "suggestions"):
        if support and getattr(support, key):
            yield Finding(("support", key), f"a conversation has no {key}", f"remove {key}")


def list_types_for(section: str) -> list[str]:
    """Return the names of the field types that work in a section, such as "input"."""
    return [name for name, kind in FIELD_TYPES.items() if section in kind.sections]
