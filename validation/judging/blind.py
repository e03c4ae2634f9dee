"""Blind judging: who may judge, what is hidden before a vote, and what is revealed after it."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.models import Example
from annotation.open_round import check_may_work_now, may_work_now
from annotation.refusals import NotAllowed
from annotation.rules.prompt import list_fields_to_read
from core.accounts.models import Annotator
from tasks.config.components import Component
from tasks.config.schema import CORRECTION_FIELD, TaskConfig
from tasks.models import BlindJudging, Task
from tasks.permissions import can_judge, can_read, is_blind_owner
from validation.consensus.claims import find_label_field
from validation.consensus.criteria import list_judged_criteria
from validation.consensus.reading import count_words
from validation.judging import gold_pause
from validation.judging.confirmed import check_votes_count, do_votes_count
from validation.models import GoldAnswer, Validation, ValidatorAnswer, Verdict


class NotBlind(NotAllowed):
    """Raised for a judge who may read the task's labels."""

    code = "not_blind"


class AlreadyShown(NotAllowed):
    """Raised for a judge who has seen this example with its answer outside the queue."""

    code = "already_shown"


def build_blind_inputs(config: TaskConfig, example: Example) -> dict[str, Any]:
    """Return the author's inputs by field, without fields that reveal their claim."""
    return {
        name: value
        for name in config.judged_fields
        if (value := example.inputs.get(name)) is not None
    }


def count_words_shown(config: TaskConfig, example: Example) -> int:
    """Count the words of the example that its judge reads, without a model's answer."""
    context = list_fields_to_read(config, example.context.fields)
    criteria = list_judged_criteria(config, example.outcome, example.inputs)
    texts = [criterion.text for criterion in criteria]
    return count_words([*context.values(), *build_blind_inputs(config, example).values(), *texts])


def list_questions(
    config: TaskConfig, vote: ValidatorAnswer | None, example: Example
) -> list[Component]:
    """Return the follow-up questions that the task asks about a judgement.

    vote: None while a flag is being written. Conditions on the author's choices are then ignored,
    because they would reveal the label.
    """
    verdict = get_verdict(config, vote, example) if vote else Verdict.FLAGGED
    inputs = {} if vote is None and find_label_field(config) else example.inputs
    return [
        _translate_question(component)
        for component in config.judge_questions
        if component.is_allowed_in("metadata")
        # Whether a secret was kept has no correct answer to type in.
        and not (component.name == CORRECTION_FIELD and config.verdict.type == "secret")
        and (component.when is None or component.when.is_met(inputs, verdict=verdict))
    ]


def _translate_question(component: Component) -> Component:
    """Translate a built-in question; an owner's question is unchanged."""
    if component.name != CORRECTION_FIELD:
        return component
    return component.model_copy(update={"label": _("What is the right answer?")})


def get_verdict(config: TaskConfig, vote: ValidatorAnswer, example: Example) -> str:
    """Return the vote as a verdict on the author's label.

    This is the vote's own verdict, or whether its label equals the author's.
    """
    field = find_label_field(config)
    if vote.verdict or field is None:
        return vote.verdict
    is_same = vote.label == example.inputs.get(field)
    return Verdict.CORRECT if is_same else Verdict.INCORRECT


def should_reveal_label(config: TaskConfig, vote: ValidatorAnswer) -> bool:
    """Return whether the author's label is shown after this vote.

    It is not shown after a flag or "cannot tell".
    """
    return config.validation.reveal and vote.verdict in ("", Verdict.CORRECT, Verdict.INCORRECT)


def is_label_revealed(config: TaskConfig, vote: ValidatorAnswer) -> bool:
    """Return whether the step after this vote partly reveals the author's label, so it is final.

    Questions asked only for some labels, or only of people who agree with the author, reveal it
    too.
    """
    conditions = (
        [question.when for question in config.judge_questions if question.when]
        if find_label_field(config)
        else []
    )
    agreement = (Verdict.CORRECT, Verdict.INCORRECT) if vote.label else ()
    return should_reveal_label(config, vote) or any(
        condition.field or condition.verdict in agreement for condition in conditions
    )


def is_final(answer: Validation | GoldAnswer, task: Task) -> bool:
    """Return whether an answer cannot be undone, because the correct one was revealed."""
    if isinstance(answer, GoldAnswer) and gold_pause.is_answer_revealed(answer, task):
        return True
    return is_label_revealed(task.config, answer)


def can_read_labels(validator: Annotator, task: Task) -> bool:
    """Return whether the person may read the task's labels, and so may not judge it."""
    return validator.user is not None and can_read(validator.user, task)


def may_judge(validator: Annotator, task: Task) -> bool:
    """Return whether the person may judge the task blindly, by the rules of `check_may_judge`."""
    if validator.user is None:
        return True
    has_role = can_judge(validator.user, task) and may_work_now(validator, task)
    return (
        has_role and do_votes_count(validator, task) and not is_waiting_for_record(validator, task)
    )


def is_waiting_for_record(validator: Annotator, task: Task) -> bool:
    """Return whether an owner must wait until the examples that they could read are recorded."""
    if validator.user is None or not is_blind_owner(validator.user, task):
        return False
    # Until then, they may still get an example that they could read before.
    open_periods = BlindJudging.objects.filter(task=task, annotator=validator, ended_at=None)
    return open_periods.filter(noted_at=None).exists()


def check_may_judge(validator: Annotator, task: Task) -> None:
    """Raise NotBlind for people who may read the task's labels, NotAllowed for other roles.

    Also raises NotAllowed for people of a panel who are not working in a study of the task. Raises
    Unconfirmed for people whose votes do not count.
    """
    if can_read_labels(validator, task):
        raise NotBlind(
            _("Your role shows you this task's labels, so you can't judge its examples.")
        )
    if validator.user is not None and not can_judge(validator.user, task):
        raise NotAllowed(_("Your role in this task doesn't include judging."))
    check_may_work_now(validator, task)
    check_votes_count(validator, task)
    if is_waiting_for_record(validator, task):
        raise NotBlind(_("Blind judging wasn't fully turned on. Turn it on again."))
