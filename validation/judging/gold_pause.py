"""The pause of a validator who answered too many gold items wrongly, until they read a refresher.

The threshold is in `validation/consensus/gold_check.py`. `open_session` in
`validation/judging/services.py` leases no example during the pause.
"""

from collections.abc import Sequence

from core.accounts.models import Annotator
from tasks.models import Task
from validation.consensus.gold_check import Check, assess_gold_answers
from validation.models import GoldAnswer


def list_gold_answers(validator: Annotator, task: Task) -> Sequence[GoldAnswer]:
    """Return the validator's answers to the task's gold items, oldest first. Two queries."""
    own_answers = GoldAnswer.objects.filter(validator=validator)
    if not own_answers.exists():  # the usual case, checked on each page
        return []
    return list(own_answers.filter(gold__example__round__task=task).order_by("created_at", "pk"))


def assess_answers(answers: Sequence[GoldAnswer]) -> Check:
    """Check whether a validator judges carefully, by their answers since the last refresher."""
    correctness = [answer.is_correct for answer in answers if answer.counts]
    return assess_gold_answers(sum(correctness), len(correctness))


def is_judging_paused(answers: Sequence[GoldAnswer]) -> bool:
    """Return whether a validator must read a refresher before they judge more examples.

    answers: their answers to the task's gold items.
    """
    return assess_answers(answers) is Check.FAIL


def lock_answers(validator: Annotator) -> None:
    """Lock the validator's answers: no other is stored or undone until the transaction ends."""
    # Without the key, so that rows that refer to the person, such as votes, can be inserted.
    Annotator.objects.select_for_update(no_key=True).values_list("pk").get(pk=validator.pk)


def is_answer_revealed(answer: GoldAnswer, task: Task) -> bool:
    """Return whether a refresher shows the correct answer, or has shown it before."""
    answers = list_gold_answers(answer.validator, task)
    # An answer that no longer counts was in a refresher that has been read.
    does_count = any(gold_answer.pk == answer.pk and gold_answer.counts for gold_answer in answers)
    return not does_count or is_judging_paused(answers)


def finish_refresher(*, validator: Annotator, task: Task) -> None:
    """Record that the validator has read the refresher, so that only later answers count.

    One update, no lock.
    """
    own_answers = GoldAnswer.objects.filter(validator=validator, gold__example__round__task=task)
    if is_judging_paused(list(own_answers)):
        # They stay as history; only later ones decide whether the person may continue.
        own_answers.update(counts=False)
