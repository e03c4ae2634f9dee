"""Blind judging: who may judge, what is hidden before a vote, and what is revealed after it."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.models import Example
from annotation.open_round import check_at_work, is_at_work
from annotation.refusals import NotAllowed
from annotation.rules.prompt import list_fields_to_read
from core.accounts.models import Annotator
from tasks.config.components import Component
from tasks.config.schema import CORRECTION_FIELD, TaskConfig
from tasks.models import BlindJudging, Task
from tasks.permissions import can_judge, can_read, is_blind_owner
from validation.consensus.claims import find_label_field
from validation.consensus.reading import count_words
from validation.judging import gold
from validation.judging.confirmed import check_may_decide, may_decide
from validation.models import GoldAnswer, Validation, ValidatorAnswer, Verdict


class NotBlind(NotAllowed):
    """Raised for a judge who may read the task's labels."""

    code = "not_blind"


class AlreadyShown(NotAllowed):
    """Raised for a judge who has seen this example with its answer outside the queue."""

    code = "already_shown"


def blind_inputs(config: TaskConfig, example: Example) -> dict[str, Any]:
    """Return the author's inputs by field, without fields that reveal their claim."""
    return {
        name: value
        for name in config.judged_fields
        if (value := example.inputs.get(name)) is not None
    }


def words_shown(config: TaskConfig, example: Example) -> int:
    """Count the words of the example that its judge reads, without those of a model's answer."""
    context = list_fields_to_read(config, example.context.fields)
    return count_words([*context.values(), *blind_inputs(config, example).values()])


def questions(
    config: TaskConfig, vote: ValidatorAnswer | None, example: Example
) -> list[Component]:
    """Return the follow-up questions that the task asks about a judgement.

    vote: None while a flag is being written. Conditions on the author's choices are then ignored,
    because they would reveal the label.
    """
    verdict = verdict_of(config, vote, example) if vote else Verdict.FLAGGED
    inputs = {} if vote is None and find_label_field(config) else example.inputs
    return [
        _in_their_language(component)
        for component in config.judge_questions
        if component.works_in("metadata")
        # Whether a secret was kept has no right answer to type.
        and not (component.name == CORRECTION_FIELD and config.verdict.type == "secret")
        and (component.when is None or component.when.holds(inputs, verdict=verdict))
    ]


def _in_their_language(component: Component) -> Component:
    """Translate a built-in question; an owner's question is unchanged."""
    if component.name != CORRECTION_FIELD:
        return component
    return component.model_copy(update={"label": _("What is the right answer?")})


def verdict_of(config: TaskConfig, vote: ValidatorAnswer, example: Example) -> str:
    """Return the vote as a verdict on the author's label.

    This is the vote's own verdict, or whether its label equals the author's.
    """
    field = find_label_field(config)
    if vote.verdict or field is None:
        return vote.verdict
    same = vote.label == example.inputs.get(field)
    return Verdict.CORRECT if same else Verdict.INCORRECT


def asks_reveal(config: TaskConfig, vote: ValidatorAnswer) -> bool:
    """Return whether the author's label is shown after this vote.

    It is not shown after a flag or "cannot tell".
    """
    return config.validation.reveal and vote.verdict in ("", Verdict.CORRECT, Verdict.INCORRECT)


def reveals_label(config: TaskConfig, vote: ValidatorAnswer) -> bool:
    """Return whether the step after this vote partly reveals the author's label, so it is final.

    Questions asked only for some labels, or only of people who agree with the author, reveal it
    too.
    """
    conditions = (
        [c.when for c in config.judge_questions if c.when] if find_label_field(config) else []
    )
    agreement = (Verdict.CORRECT, Verdict.INCORRECT) if vote.label else ()
    return asks_reveal(config, vote) or any(
        when.field or when.verdict in agreement for when in conditions
    )


def is_final(answer: Validation | GoldAnswer, task: Task) -> bool:
    """Return whether an answer cannot be undone, because the correct one was revealed."""
    if isinstance(answer, GoldAnswer) and gold.is_revealed(answer, task):
        return True
    return reveals_label(task.config, answer)


def reads_labels(validator: Annotator, task: Task) -> bool:
    """Return whether the person may read the task's labels, and so may not judge it."""
    return validator.user is not None and can_read(validator.user, task)


def may_judge(validator: Annotator, task: Task) -> bool:
    """Return whether the person may judge the task blindly, by the rules of `check_may_judge`."""
    if validator.user is None:
        return True
    is_asked = can_judge(validator.user, task) and is_at_work(validator, task)
    return is_asked and may_decide(validator, task) and not is_still_noted(validator, task)


def is_still_noted(validator: Annotator, task: Task) -> bool:
    """Return whether an owner must wait to judge until what they could read is recorded."""
    if validator.user is None or not is_blind_owner(validator.user, task):
        return False
    # Until then an example that they could read before may still be given to them.
    begun = BlindJudging.objects.filter(task=task, annotator=validator, ended_at=None)
    return begun.filter(noted_at=None).exists()


def check_may_judge(validator: Annotator, task: Task) -> None:
    """Raise NotBlind for people who may read the task's labels, NotAllowed for other roles.

    Raises NotAllowed also for people of a panel who are not working in a study of the task, and
    Unconfirmed for people whose votes do not count.
    """
    if reads_labels(validator, task):
        raise NotBlind(_("You may read this task's labels, so others judge it."))
    if validator.user is not None and not can_judge(validator.user, task):
        raise NotAllowed(_("Your role in this task is not to judge."))
    check_at_work(validator, task)
    check_may_decide(validator, task)
    if is_still_noted(validator, task):
        raise NotBlind(_("Turn on blind judging once more: it was interrupted."))
