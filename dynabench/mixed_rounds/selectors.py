"""What each arm of a mixed round has brought: tries, rates with intervals, and edit distances."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, When
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.models import Assignment, Example
from dynabench.adversaries.board import PEOPLE_NAMES
from tasks.arms import ARMS, DRAFTS, MACHINES, compute_shares
from tasks.models import Round
from validation.decisions.counted import STANDING_CONDITIONS, build_measure_condition
from validation.rates.rates import CollectedCounts, Rate, Undefined, compute_round_rates

ARM_TITLES: Mapping[str, Promise] = {
    **PEOPLE_NAMES,
    # Translators: programs that write examples without people
    MACHINES: _("Machines"),
}


@dataclass(frozen=True)
class ArmResult:
    """What an arm of a round has brought.

    share: of all texts (0-1), None while the round is not mixed. texts: how often it was drawn
    for a text, None for machines. tries: examples that were not withdrawn. catches: those that
    people confirm and that fooled the model. fooling_rate, error_rate: MER and vMER.
    edit_distance: the median number of changed characters, None without drafts.
    """

    arm: str
    title: str | Promise
    share: float | None
    texts: int | None
    tries: int
    catches: int
    fooling_rate: Rate | Undefined
    error_rate: Rate | Undefined
    edit_distance: float | None


def measure_arms(round: Round) -> list[ArmResult]:
    """Return the results of all arms. Three queries.

    An author's examples depend on one another, so intervals are clustered by author. A machine's
    examples are independent: each comes from another sentence or template.
    """
    counts = _count_by_arm(round)
    drawn_arms = Assignment.objects.filter(round=round, keeps_arm=False, mends=None)
    drawn_counts = dict(drawn_arms.order_by().values_list("arm").annotate(Count("pk")))
    distances = _select_examples(round).filter(support__edit_distance__isnull=False)
    distance_values = list(distances.values_list("support__edit_distance", flat=True))
    shares = compute_shares(round.arm_shares) if round.arm_shares else {}
    results = []
    for arm in ARMS:
        authors = counts[arm]
        rates = compute_round_rates(authors)
        result = ArmResult(
            arm=arm,
            title=ARM_TITLES[arm],
            share=shares.get(arm),
            texts=None if arm == MACHINES else drawn_counts.get(arm, 0),
            tries=int(sum(author.collected for author in authors)),
            catches=int(sum(author.verified_fooled for author in authors)),
            fooling_rate=rates["mer"],
            error_rate=rates["vmer"],
            edit_distance=median(distance_values) if arm == DRAFTS and distance_values else None,
        )
        results.append(result)
    return results


def _select_examples(round: Round) -> QuerySet[Example]:
    return Example.objects.filter(round=round, **STANDING_CONDITIONS)


def _count_by_arm(round: Round) -> dict[str, list[CollectedCounts]]:
    """Return the counts of each author of an arm; of machines those of each example."""
    rows: Any = (
        _select_examples(round)
        .filter(support__arm__in=ARMS)
        .annotate(cluster=Case(When(by_program=True, then=F("pk")), default=F("annotator")))
        .order_by()
        .values("support__arm", "cluster")
        .annotate(**_build_aggregates())
    )
    counts: dict[str, list[CollectedCounts]] = defaultdict(list)
    for row in rows:
        values = {name: row[f"number_{name}"] for name in CollectedCounts._fields}
        counts[row["support__arm"]].append(CollectedCounts(**values))
    return counts


def _build_aggregates() -> dict[str, Count]:
    """Return the aggregates that count the examples of a query, by the fields' names."""
    has_outcome = ~Q(outcome=Example.Outcome.UNKNOWN)
    conditions = {
        "collected": Q(),
        "with_outcome": has_outcome,
        "fooled": build_measure_condition("fooled"),
        "with_model": has_outcome & ~Q(outcome=Example.Outcome.NO_MODEL),
        "judged": build_measure_condition("judged"),
        "decided": build_measure_condition("decided"),
        "verified": build_measure_condition("confirmed"),
        "verified_fooled": build_measure_condition("catches"),
    }
    # Prefixed, because an aggregate must not have the name of a column.
    return {
        f"number_{name}": Count("pk", filter=condition) for name, condition in conditions.items()
    }
