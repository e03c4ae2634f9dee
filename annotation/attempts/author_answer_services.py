"""The author's answer about an undecided example: whether the model is right, or each criterion."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from annotation import selectors
from annotation.models import Example
from annotation.refusals import NotAllowed
from annotation.verdict.outcome import Outcome, TargetVerdict, resolve_outcome
from core.errors import Invalid
from tasks.config.criteria import CLEAR_JUDGEMENTS, Criterion
from tasks.config.schema import TaskConfig
from tasks.config.verdicts import list_criteria, score_answer


def answer_undecided(
    *, example: Example, model_right: bool | None = None, criteria: Sequence[str] | None = None
) -> Example:
    """Store the author's answer about an undecided example; the first answer wins.

    model_right: whether the model's answer is acceptable. criteria: `met` or `not_met` for each
    criterion instead, from which it follows, if the example has criteria. Locks the example. Raises
    Invalid, and NotAllowed if there is nothing to decide.
    """
    config = example.round.task.config
    own_criteria = list_criteria(config.verdict, example.inputs)
    is_right, score = _read_answer(config, own_criteria, model_right, criteria)
    with transaction.atomic():
        locked_example = Example.objects.select_for_update(of=("self",)).get(pk=example.pk)
        if locked_example.outcome != Example.Outcome.UNDECIDED:
            raise NotAllowed(_("This example has already been decided."))
        if selectors.is_judged(locked_example):  # what the votes mean must not change under them
            raise NotAllowed(_("Others have judged this example, so your answer came too late."))
        verdicts = tuple(
            TargetVerdict(o.fooled, o.score) for o in locked_example.target_outputs.all()
        )
        # By the answers' own verdicts, which are in the order of the targets.
        locked_example.outcome = resolve_outcome(
            Outcome(None, verdicts, "undecided"), is_right
        ).status
        locked_example.decided_by = Example.DecidedBy.AUTHOR
        locked_example.save(update_fields=["outcome", "decided_by"])
        # Only answers that the rule left open; its verdicts on the others hold.
        open_outputs = locked_example.target_outputs.filter(fooled__isnull=True)
        if criteria is None:
            open_outputs.update(fooled=not is_right)
        else:
            open_outputs.update(fooled=not is_right, score=score, judgements=list(criteria))
    return locked_example


def _read_answer(
    config: TaskConfig,
    own_criteria: Sequence[Criterion],
    model_right: bool | None,
    criteria: Sequence[str] | None,
) -> tuple[bool, float | None]:
    """Return whether the model is right, and its score by the criteria. Raises Invalid."""
    if config.verdict.type != "criteria":
        if criteria is not None:
            raise Invalid(_("This task has no criteria. Leave this field out."), field="criteria")
        if model_right is None:
            raise Invalid(
                _("Choose whether the model's answer is acceptable."), field="model_right"
            )
        return model_right, None
    if model_right is not None:
        message = _(
            "In this task, the criteria decide whether the model is right. Leave this field out."
        )
        raise Invalid(message, field="model_right")
    given = criteria or ()
    # The author wrote the criteria, and is asked for a verdict: so each is met or not.
    if len(given) != len(own_criteria) or not set(given) <= {*CLEAR_JUDGEMENTS}:
        raise Invalid(_("Choose for each criterion whether the answer meets it."), field="criteria")
    score, verdict = score_answer(config.verdict, own_criteria, given)
    return verdict == "correct", score.value
