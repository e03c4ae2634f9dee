"""The columns of a new vote, and whether it is one that was stored before."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Example
from core.accounts.models import Annotator
from core.errors import Invalid
from tasks.config.criteria import Judgement
from validation.consensus.consensus import Vote
from validation.consensus.criteria import build_criteria_vote, list_judged_criteria
from validation.consensus.steps import read_step_labels
from validation.models import GoldAnswer, JudgeLease, Validation


def build_vote_columns(validator: Annotator, vote: Vote, lease: JudgeLease) -> dict[str, Any]:
    """Return the fields that votes and answers to gold items have in common."""
    now = timezone.now()
    return {
        "validator": validator,
        "label": vote.label or "",
        "verdict": vote.verdict or "",
        "seconds": (now - lease.leased_at).total_seconds(),
        "created_at": now,
    }


def find_equal_answer(
    answers: Sequence[Validation] | Sequence[GoldAnswer], values: Mapping[str, Any]
) -> Validation | GoldAnswer | None:
    """Return the validator's earlier equal answer, if there is one."""
    # Times are not compared, because a repeated request has another time.
    compared_columns = (
        *("validator_id", "label", "verdict", "judgements"),
        *("flag_reason", "comment"),
    )
    steps = read_step_labels(values["metadata"])
    columns = {**values, "validator_id": values["validator"].pk}
    return next(
        (
            answer
            for answer in answers
            if all(getattr(answer, name) == columns[name] for name in compared_columns)
            and read_step_labels(answer.metadata) == steps
        ),
        None,
    )


def check_fits_criteria(
    example: Example, vote: Vote, judgements: Sequence[Judgement] | None
) -> None:
    """Check that a vote judges all criteria of the example, or flags it. Raises Invalid.

    So no door stores a vote that says nothing of the criteria, or one that they contradict.
    """
    config = example.round.task.config
    criteria = list_judged_criteria(config, example.outcome, example.inputs)
    # A flag is about the whole example, which may be too broken to judge.
    if judgements is None:
        if criteria and vote.verdict != "flagged":
            raise Invalid(_("Judge each criterion."), field="criteria")
        return
    if len(judgements) != len(criteria):
        raise Invalid(_("Judge each criterion."), field="criteria")
    assert config.verdict.type == "criteria"
    if build_criteria_vote(config.verdict, criteria, judgements) != vote:
        raise Invalid(
            _("The vote doesn't match the judgements of the criteria. Correct one of them."),
            field="criteria",
        )
