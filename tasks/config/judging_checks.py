"""Check how a configuration lets others judge: votes, mode, and the steps of a conversation."""

from collections.abc import Iterator

from core.text import words
from tasks.config.components import Label
from tasks.config.judging import STEPS_KEY
from tasks.config.parsing import Finding, Loc, locate_inside, suggest_nearest
from tasks.config.schema import TaskConfig
from tasks.config.score_checks import find_repetitions


def list_step_labels(config: TaskConfig) -> tuple[Label, ...]:
    """Return the labels of a step: its own, or else the answer's; empty if none is judged."""
    steps = config.validation.steps
    if steps is None:
        return ()
    return steps.labels or config.get_labels(config.answer_field)


def find_judging_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield the contradictions in the votes, the mode and the steps of `validation`."""
    votes, location = config.validation.votes, ("validation", "votes")
    # The other rules count shares of a number of votes, which must be known.
    if votes.rule != "n-equal" and votes.of is None:
        message = f"the rule {votes.rule} needs the number of votes"
        yield Finding(location, message, "add of, such as of: 5")
    # Such an example would never be decided.
    elif votes.of is not None and votes.needed > votes.of:
        fix = "lower needed or raise of"
        yield Finding(
            locate_inside(location, "needed"), f"{votes.needed} of {votes.of} votes cannot be", fix
        )
    elif votes.rule in ("strict", "plurality") and votes.needed != (votes.of or 0) // 2 + 1:
        fix = f"remove needed; the rule {votes.rule} uses only of"
        yield Finding(locate_inside(location, "needed"), "needed does not fit the rule", fix)
    types = {config.get_component(name).type for name in config.target_fields}
    if config.validation.mode == "label" and "multiclass" not in types:
        message = "there is no target field with labels for validators to choose"
        yield Finding(("validation", "mode"), message, "write `mode: verdict`")
    yield from _find_sample_errors(config)
    yield from _find_step_errors(config)


def has_comparable_labels(config: TaskConfig) -> bool:
    """Return whether a model's own answer can be compared with a label that the author chose.

    If not, only a chat model with an instruction can judge.
    """
    field = config.answer_field
    return field in config.target_fields and bool(config.get_labels(field))


def _find_sample_errors(config: TaskConfig) -> Iterator[Finding]:
    sample, location = config.validation.sample, ("validation", "sample")
    if sample is None:
        return
    # Arenas have no `validation` at all, which is refused before.
    if config.verdict.type == "decide":
        message = "the answer key decides about every example, so people don't judge"
        yield Finding(location, message, "remove sample")
    # The model would give its own label and never read it.
    elif sample.prompt and not sample.by_instruction and has_comparable_labels(config):
        message = "the model gives its own label, so it reads no prompt"
        yield Finding((*location, "prompt"), message, "add `by_instruction: true`")


def _find_step_errors(config: TaskConfig) -> Iterator[Finding]:
    steps, location = config.validation.steps, ("validation", "steps")
    if steps is None:
        return
    # A conversation that people have with the model has other judges.
    chats = [component.name for component in config.context if component.type == "chat"]
    if steps.field not in chats:
        message = f'"{steps.field}" is not a conversation of the context'
        yield Finding((*location, "field"), message, suggest_nearest(steps.field, chats))
    if not steps.roles:
        message, fix = "no turn is a step", "name assistant, tool or both"
        yield Finding((*location, "roles"), message, fix)
    yield from find_repetitions(
        (*location, "roles"), steps.roles, '"{}" is there twice', "leave one out"
    )
    yield from _find_step_label_errors(config, (*location, "labels"))
    # Answers about steps are stored beside those to the questions.
    for component in config.metadata.validate:
        if component.name == STEPS_KEY:
            message = f'a field is called "{STEPS_KEY}" already'
            yield Finding(location, message, "rename the field")


def _find_step_label_errors(config: TaskConfig, location: Loc) -> Iterator[Finding]:
    values = [label.value for label in list_step_labels(config)]
    if len(values) < 2:
        message = "a step needs labels to choose from"
        yield Finding(location, message, "give at least two labels")
    for index, earlier_label in words.iterate_alike_labels(values):
        message = f'the labels "{earlier_label}" and "{values[index]}" count as equal'
        fix = "let them differ in more than case, spaces or the form of letters"
        yield Finding((*location, index), message, fix)
