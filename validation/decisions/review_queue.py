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

PAGE_SIZE = 20
MAX_SCANNED_EXAMPLES = 1000
"""The most examples that one page scans for examples to review."""
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
    SPLIT = "split", gettext_lazy("Decided by a margin of one vote")
    FLAGGED = "flagged", gettext_lazy("Flagged or unclear")
    # xgettext:no-python-format
    SAMPLE = "sample", gettext_lazy("Sample (5% of judged examples)")
    OWNER = "owner", gettext_lazy("Decided by owners")


UNUSABLE_VERDICTS = [Verdict.FLAGGED, Verdict.CANNOT_TELL]
# Excludes examples that owners decided, because they have already reviewed them.
JUDGED_CONDITION = Q(state__in=[State.DECIDED, State.NO_CONSENSUS], votes__gt=0) & ~Q(
    decided_by=Consensus.DecidedBy.OWNER
)
CANDIDATE_CONDITIONS = {
    Kind.ALL: JUDGED_CONDITION,
    Kind.NO_CONSENSUS: JUDGED_CONDITION & Q(state=State.NO_CONSENSUS),
    # Two different votes decide nothing, so a narrow decision has three or more votes.
    Kind.SPLIT: JUDGED_CONDITION & Q(state=State.DECIDED, votes__gte=3),
    Kind.FLAGGED: JUDGED_CONDITION & Q(state=State.DECIDED, verdict__in=UNUSABLE_VERDICTS),
    Kind.SAMPLE: JUDGED_CONDITION,
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


def get_review_page(
    rounds: Iterable[Round], kind: Kind, after: int = 0, size: int = PAGE_SIZE
) -> ReviewPage:
    """Return the next examples to review after the id `after`, oldest first. Two queries.

    Reads at most MAX_SCANNED_EXAMPLES, so that a page costs the same in a round of a million. So
    `items` can be short or empty, even if `after` shows that more examples follow.
    """
    rows = list(
        Consensus.objects.filter(
            CANDIDATE_CONDITIONS[kind],
            round__in=list(rounds),
            pk__gt=after,
            example__retracted_at__isnull=True,
        )
        .order_by("pk")
        .values(*COLUMNS)[:MAX_SCANNED_EXAMPLES]
    )
    # One query for all votes.
    narrow_example_ids = _find_decided_by_one([row["pk"] for row in rows if row["votes"] >= 3])
    items: list[ReviewItem] = []
    row: Mapping[str, Any] = {}
    for row in rows:
        kinds = _find_kinds(row, is_narrow=row["pk"] in narrow_example_ids)
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
    # All rows were read, and there are fewer than the limit, so there are no more.
    is_end = not rows or (row is rows[-1] and len(rows) < MAX_SCANNED_EXAMPLES)
    return ReviewPage(items, None if is_end else row["pk"])


def _find_kinds(row: Mapping[str, Any], *, is_narrow: bool) -> set[Kind]:
    # In any case, an owner has reviewed it.
    if row["decided_by"] == Consensus.DecidedBy.OWNER:
        return {Kind.OWNER}
    kind_flags = {
        Kind.NO_CONSENSUS: row["state"] == State.NO_CONSENSUS,
        Kind.SPLIT: row["state"] == State.DECIDED and is_narrow,
        Kind.FLAGGED: row["verdict"] in UNUSABLE_VERDICTS,
        Kind.SAMPLE: is_sampled_for_review(row["example__uuid"], settings.SECRET_KEY),
    }
    return {kind for kind, is_true in kind_flags.items() if is_true}


def _find_decided_by_one(examples: Sequence[int]) -> set[int]:
    """Return the ids of examples whose first choice leads the second by at most one vote."""
    counts_by_example: dict[int, list[int]] = {}
    rows = Validation.objects.filter(example__in=examples).order_by()
    for example_id, _, _, votes in rows.values_list("example", "label", "verdict").annotate(
        Count("pk")
    ):
        counts_by_example.setdefault(example_id, []).append(votes)
    return {
        example_id
        for example_id, count in counts_by_example.items()
        if len(count) > 1 and sorted(count)[-1] - sorted(count)[-2] <= 1
    }
