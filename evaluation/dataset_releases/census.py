"""Count the examples of a round for a release: those it contains, and the others by reason."""

from collections import Counter

from django.db.models import Case, CharField, Count, Q, Value, When
from django.utils.translation import gettext_noop

from annotation.models import Example
from evaluation.dataset_releases.forecast import Census
from evaluation.dataset_releases.rows import IS_RELEASABLE, count_rows
from evaluation.dataset_releases.splits import AUTHOR, SIZE
from tasks.models import Round
from validation.models import Consensus, Verdict

State = Consensus.State
WITHDRAWN, SENT_BACK, FLAGGED, UNCLEAR = "withdrawn", "sent_back", "flagged", "unclear"
REFUTED, NO_CONSENSUS, UNDECIDED, ASKED = "refuted", "no_consensus", "undecided", "asked"
# Rows of a table, and items of a list in a refusal: about one author, without a full stop.
REASONS = {
    AUTHOR: gettext_noop("The split with this author's other examples is full"),
    SIZE: gettext_noop("Train has reached its chosen size"),
    UNDECIDED: gettext_noop("Undecided: more votes needed"),
    NO_CONSENSUS: gettext_noop("Judges didn't agree"),
    REFUTED: gettext_noop("Not confirmed: judges disagree with the author"),
    FLAGGED: gettext_noop("Flagged"),
    UNCLEAR: gettext_noop("Judges couldn't tell"),
    SENT_BACK: gettext_noop("Sent back to the author"),
    ASKED: gettext_noop("The author hasn't said whether the model was wrong"),
    WITHDRAWN: gettext_noop("Withdrawn"),
}
"""The reasons why an example is in no split, as texts, in the order in which pages list them."""
_IS_DECIDED = Q(consensus__state=State.DECIDED)
# In this order: the first condition that applies is the reason.
REASON_CASE = Case(
    When(retracted_at__isnull=False, then=Value(WITHDRAWN)),
    When(IS_RELEASABLE, then=Value("")),
    When(consensus__is_sent_back=True, then=Value(SENT_BACK)),
    When(_IS_DECIDED, consensus__verdict=Verdict.FLAGGED, then=Value(FLAGGED)),
    When(_IS_DECIDED, consensus__verdict=Verdict.CANNOT_TELL, then=Value(UNCLEAR)),
    When(_IS_DECIDED, then=Value(REFUTED)),
    When(consensus__state=State.NO_CONSENSUS, then=Value(NO_CONSENSUS)),
    When(consensus__isnull=True, outcome=Example.Outcome.UNDECIDED, then=Value(ASKED)),
    default=Value(UNDECIDED),
    output_field=CharField(),
)


def take_census(round: Round) -> Census:
    """Count every example of a round once: as a row if it is releasable, otherwise by reason.

    Rows by people are counted by author and label. Two queries.
    """
    rows = Example.objects.filter(round=round).annotate(reason=REASON_CASE).order_by()
    left_out: Counter[str] = Counter()
    program_row_count = 0
    # `count_rows` counts people's rows by author and label.
    for reason, by_program, row_count in rows.values_list("reason", "by_program").annotate(
        Count("pk")
    ):
        if reason:
            left_out[reason] += row_count
        elif by_program:
            program_row_count = row_count
    left_out_by_reason = {reason: left_out[reason] for reason in REASONS if reason in left_out}
    return Census(count_rows(round), program_row_count, left_out_by_reason)
