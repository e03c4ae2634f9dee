"""Find the changes to a configuration that would change the meaning of stored examples."""

from collections.abc import Iterator
from typing import Any

from tasks.config.components import Component, list_names, map_by_name
from tasks.config.parsing import Finding, Loc, locate_inside
from tasks.config.schema import TaskConfig

CONTENT_SECTIONS = ("context", "input", "output")


def find_forbidden_changes(old_config: TaskConfig, new_config: TaskConfig) -> list[Finding]:
    """Return the changes that are not allowed once people have written examples.

    These are changes to the names, types, choices and references of fields, to what a model reads
    and to the verdict, and new required fields. Wording, limits, order and new optional fields may
    change. The findings are located in the new configuration.
    """
    findings: list[Finding] = []
    for section in CONTENT_SECTIONS:
        findings += _compare_section(old_config, new_config, section)
    findings += _find_question_changes(old_config, new_config)
    findings += _find_model_field_changes(old_config, new_config)
    # The rule decided which examples fooled a model. Another one would judge them again.
    if _get_decision_settings(old_config) != _get_decision_settings(new_config):
        message = "the verdict has decided stored examples"
        findings.append(Finding(("verdict",), message, "put back what it was, or make a new task"))
    return findings


def _get_decision_settings(config: TaskConfig) -> dict[str, Any]:
    """Return the settings of the verdict that decide whether the model was fooled.

    The wording of the question and answers is left out.
    """
    return config.verdict.model_dump(exclude={"question", "answers"})


def find_context_changes(old_config: TaskConfig, new_config: TaskConfig) -> list[Finding]:
    """Return the changes that are not allowed once the task has contexts.

    The findings are located in the new configuration.
    """
    return list(_compare_section(old_config, new_config, "context"))


def _compare_section(
    old_config: TaskConfig, new_config: TaskConfig, section: str
) -> Iterator[Finding]:
    old_components = map_by_name(getattr(old_config, section))
    new_components = map_by_name(getattr(new_config, section))
    # What was stored under the name could not be shown any more.
    for name in old_components.keys() - new_components.keys():
        message = f"what is stored has the field `{name}`"
        yield Finding((section,), message, f"put `{name}` back under {section}")
    for index, component in enumerate(getattr(new_config, section)):
        loc: Loc = (section, index)
        if component.name in old_components:
            yield from _compare_component(old_components[component.name], component, loc)
        # Stored rows have no value for it. An optional field may be added at any time.
        elif component.required and section != "output":
            message = f"what is stored lacks the new field `{component.name}`"
            yield Finding(loc, message, "write `required: false`, or leave the field out")


def _compare_component(
    old_component: Component, new_component: Component, loc: Loc
) -> Iterator[Finding]:
    # These say what a stored value is. Words, limits and colours may change.
    for key in ("type", "reference", "single", "rank", "points"):
        old_value, new_value = getattr(old_component, key), getattr(new_component, key)
        if old_value != new_value:
            message = f"stored values of `{old_component.name}` have the {key} {old_value}"
            yield Finding(
                locate_inside(loc, key), message, f"write `{key}: {str(old_value).lower()}` again"
            )
    for key, old_value, new_value in (
        ("labels", old_component.values, new_component.values),
        ("tags", old_component.tags, new_component.tags),
    ):
        if set(old_value) != set(new_value):
            message = (
                f"stored values of `{old_component.name}` were chosen among {', '.join(old_value)}"
            )
            yield Finding(
                locate_inside(loc, key), message, "keep these values; `display` may change"
            )


def _find_question_changes(old_config: TaskConfig, new_config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each change to the meaning of a question that both configurations ask."""
    old_questions = map_by_name(old_config.metadata.create)
    for index, component in enumerate(new_config.metadata.create):
        if component.name in old_questions:
            yield from _compare_component(
                old_questions[component.name], component, ("metadata", "create", index)
            )


def _find_model_field_changes(old_config: TaskConfig, new_config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each field that models read in only one of the two configurations."""
    for section in ("context", "input"):
        names = list_names(getattr(old_config, section))
        for index, component in enumerate(getattr(new_config, section)):
            # Answers of models were given with the field, or without it.
            was_read, is_read = (
                component.name in old_config.model_fields,
                component.name in new_config.model_fields,
            )
            if component.name in names and was_read != is_read:
                message = (
                    f"models {'have' if was_read else 'have not'} read `{component.name}` so far"
                )
                fix = "put back `output`, `when` and `support.prompt_field`"
                yield Finding((section, index), message, fix)
