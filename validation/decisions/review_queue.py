"""Reads of the review queue: a sample of what is judged, and all disagreements."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Count, Q
from django.utils.translation import gettext_lazy

from tasks.models import Round
from validation.consensus.sampling import is_sampled_for_review
from validation.models import Consensus, Validation, Verdict

PAGE = 20
LOOKED_AT = 1000
"""Most examples that one page looks at to find those that need a look."""
State = Consensus.State
COLUMNS = (
    "pk",
    "example__uuid",
    "example__by_program",
    "state",
    "verdict",
    "votes",
    "decided_by",
)


class Kind(models.TextChoices):
    """The reason why an example is in the review queue."""

    ALL = "all", gettext_lazy("Sample and disagreements")
    NO_CONSENSUS = "no-consensus", gettext_lazy("No consensus after all votes")
    SPLIT = "split", gettext_lazy("Decided by one vote")
    FLAGGED = "flagged", gettext_lazy("Flagged, or nobody could tell")
    # xgettext:no-python-format
    SAMPLE = "sample", gettext_lazy("Sample (5% of what is judged)")
    OWNER = "owner", gettext_lazy("Decided by owners")


NOT_USABLE = [Verdict.FLAGGED, Verdict.CANNOT_TELL]
# Without what owners decided: they have had their look at it.
JUDGED = Q(state__in=[State.DECIDED, State.NO_CONSENSUS], votes__gt=0) & ~Q(
    decided_by=Consensus.DecidedBy.OWNER
)
MAY_BE = {
    Kind.ALL: JUDGED,
    Kind.NO_CONSENSUS: JUDGED & Q(state=State.NO_CONSENSUS),
    # Two votes that differ decide nothing, so a narrow decision has three or more.
    Kind.SPLIT: JUDGED & Q(state=State.DECIDED, votes__gte=3),
    Kind.FLAGGED: JUDGED & Q(state=State.DECIDED, verdict__in=NOT_USABLE),
    Kind.SAMPLE: JUDGED,
    Kind.OWNER: Q(decided_by=Consensus.DecidedBy.OWNER),
}


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An example of the review queue, and the reasons why it is there."""

    pk: int
    uuid: UUID
    votes: int
    by_program: bool
    kinds: frozenset[Kind]

    @property
    def reasons(self) -> list[str]:
        """Return the formatted reasons, in the order of `Kind`."""
        return [str(kind.label) for kind in Kind if kind in self.kinds]


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """A page of the queue; `after` is the id after which the next page starts, None at the end."""

    items: Sequence[ReviewItem] = field(default_factory=list)
    after: int | None = None


def without_consensus(round: Round) -> int:
    """Count the examples without a consensus after all votes, up to LOOKED_AT. One query."""
    rows = Consensus.objects.filter(MAY_BE[Kind.NO_CONSENSUS], round=round)
    return rows.filter(example__retracted_at__isnull=True)[:LOOKED_AT].count()


def to_review(rounds: Iterable[Round], kind: Kind, after: int = 0, size: int = PAGE) -> ReviewPage:
    """Return the next examples to review after the id `after`, oldest first. Two queries.

    Reads at most LOOKED_AT examples, so that a page costs the same in a round of a million. So
    `items` can be short or empty, even if `after` shows that more examples follow.
    """
    rows = list(
        Consensus.objects.filter(
            MAY_BE[kind], round__in=list(rounds), pk__gt=after, example__retracted_at__isnull=True
        )
        .order_by("pk")
        .values(*COLUMNS)[:LOOKED_AT]
    )
    # One query for the votes of all of them.
    narrow = _decided_by_one([row["pk"] for row in rows if row["votes"] >= 3])
    items: list[ReviewItem] = []
    row: Mapping[str, Any] = {}
    for row in rows:
        kinds = _kinds(row, is_narrow=row["pk"] in narrow)
        if kind in kinds or (kind == Kind.ALL and kinds):
            items.append(
                ReviewItem(
                    row["pk"],
                    row["example__uuid"],
                    row["votes"],
                    row["example__by_program"],
                    frozenset(kinds),
                )
            )
        if len(items) == size:
            break
    # Fewer rows than the limit, all of them looked at: nothing follows.
    is_end = not rows or (row is rows[-1] and len(rows) < LOOKED_AT)
    return ReviewPage(items, None if is_end else row["pk"])


def _kinds(row: Mapping[str, Any], *, is_narrow: bool) -> set[Kind]:
    # Whatever else holds, an owner has looked at it.
    if row["decided_by"] == Consensus.DecidedBy.OWNER:
        return {Kind.OWNER}
    kind_flags = {
        Kind.NO_CONSENSUS: row["state"] == State.NO_CONSENSUS,
        Kind.SPLIT: row["state"] == State.DECIDED and is_narrow,
        Kind.FLAGGED: row["verdict"] in NOT_USABLE,
        Kind.SAMPLE: is_sampled_for_review(row["example__uuid"], settings.SECRET_KEY),
    }
    return {kind for kind, true in kind_flags.items() if true}


def _decided_by_one(examples: Sequence[int]) -> set[int]:
    """Return the examples whose first choice leads the second by at most one vote."""
    counts_by_example: dict[int, list[int]] = {}
    rows = Validation.objects.filter(example__in=examples).order_by()
    for pk, _, _, times in rows.values_list("example", "label", "verdict").annotate(Count("pk")):
        counts_by_example.setdefault(pk, []).append(times)
    return {
        pk
        for pk, n in counts_by_example.items()
        if len(n) > 1 and sorted(n)[-1] - sorted(n)[-2] <= 1
    }
