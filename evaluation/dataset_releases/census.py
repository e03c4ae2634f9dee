"""Counts the examples of a round for a release: those that it takes, and why it takes no others."""

from collections import Counter

from django.db.models import Case, CharField, Count, Q, Value, When
from django.utils.translation import gettext_noop

from annotation.models import Example
from evaluation.dataset_releases.forecast import Census
from evaluation.dataset_releases.rows import RELEASABLE, count_rows
from evaluation.dataset_releases.splits import AUTHOR, SIZE
from tasks.models import Round
from validation.models import Consensus, Verdict

State = Consensus.State
WITHDRAWN, SENT_BACK, FLAGGED, UNCLEAR = "withdrawn", "sent_back", "flagged", "unclear"
REFUTED, NO_CONSENSUS, UNDECIDED, ASKED = "refuted", "no_consensus", "undecided", "asked"
REASONS = {
    AUTHOR: gettext_noop("No room left in their author's split"),
    SIZE: gettext_noop("Above the size chosen for train"),
    UNDECIDED: gettext_noop("Undecided: they need more votes"),
    NO_CONSENSUS: gettext_noop("No agreement among the judges"),
    REFUTED: gettext_noop("Refuted: judges disagree with the author"),
    FLAGGED: gettext_noop("Flagged"),
    UNCLEAR: gettext_noop("Judges could not tell"),
    SENT_BACK: gettext_noop("Sent back to their authors"),
    ASKED: gettext_noop("Their authors have not said whether the model was wrong"),
    WITHDRAWN: gettext_noop("Withdrawn"),
}
"""Why an example is in no split, in words, in the order in which pages list them."""
_DECIDED = Q(consensus__state=State.DECIDED)
# In this order: the first condition that holds is the reason.
REASON_CASE = Case(
    When(retracted_at__isnull=False, then=Value(WITHDRAWN)),
    When(RELEASABLE, then=Value("")),
    When(consensus__is_sent_back=True, then=Value(SENT_BACK)),
    When(_DECIDED, consensus__verdict=Verdict.FLAGGED, then=Value(FLAGGED)),
    When(_DECIDED, consensus__verdict=Verdict.CANNOT_TELL, then=Value(UNCLEAR)),
    When(_DECIDED, then=Value(REFUTED)),
    When(consensus__state=State.NO_CONSENSUS, then=Value(NO_CONSENSUS)),
    When(consensus__isnull=True, outcome=Example.Outcome.UNDECIDED, then=Value(ASKED)),
    default=Value(UNDECIDED),
    output_field=CharField(),
)


def take_census(round: Round) -> Census:
    """Count every example of a round once: as a row, by author, or by the reason for its exclusion.

    Two queries.
    """
    rows = Example.objects.filter(round=round).annotate(reason=REASON_CASE).order_by()
    left_out: Counter[str] = Counter()
    programs = 0
    # Rows of people are counted by author and label in `count_rows`.
    for reason, by_program, n in rows.values_list("reason", "by_program").annotate(Count("pk")):
        if reason:
            left_out[reason] += n
        elif by_program:
            programs = n
    by_reason = {reason: left_out[reason] for reason in REASONS if reason in left_out}
    return Census(count_rows(round), programs, by_reason)
