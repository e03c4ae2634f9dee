"""The share of machines in a mixed round, which no run exceeds."""

from django.db.models import Count

from annotation.models import Example
from dynabench.adversaries.models import AdversaryTry
from evaluation.models.jobs import UNFINISHED_STATES
from tasks.arms import MACHINES, PEOPLE_ARMS, count_allowed_machine_texts
from tasks.models import Round
from validation.decisions.counted import STANDING_CONDITIONS


def has_share_left(round: Round) -> bool:
    """Return whether machines may submit another text. True outside of mixed rounds.

    Call it in a transaction that then marks the try as REPEATING. Locks the round, so that the
    tries that several runs submit at once are counted, too.
    """
    locked_round = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
    if not locked_round.arm_shares:
        return True
    examples = Example.objects.filter(round=locked_round, **STANDING_CONDITIONS).order_by()
    counts: dict[str | None, int] = dict(examples.values_list("support__arm").annotate(Count("pk")))
    # Asked again, and not stored yet. A run that is over stores nothing more.
    submitted_tries = AdversaryTry.objects.filter(
        round=locked_round,
        state=AdversaryTry.State.REPEATING,
        example=None,
        run__state__in=UNFINISHED_STATES,
    )
    machine_texts = counts.get(MACHINES, 0) + submitted_tries.count()
    # Only those in an arm: what was written before the round was mixed is not compared.
    people_texts = sum(counts.get(arm, 0) for arm in PEOPLE_ARMS)
    return machine_texts < count_allowed_machine_texts(locked_round.arm_shares, people_texts)
