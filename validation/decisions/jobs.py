"""Second opinions, which are computed again when enough votes have come."""

from core.jobs.keeper import is_at_work
from core.periodic import daily
from tasks.models import Round
from validation.decisions.awaited import JUDGED_STATES
from validation.decisions.second_opinion import is_stale
from validation.decisions.services import derive_round
from validation.models import RoundPolicy


@daily(
    counts="examples decided otherwise",
    why="With a tenth more votes Dawid and Skene's model may decide otherwise.",
)
def refit_second_opinions() -> int:
    """Refit Dawid and Skene's model in rounds with a tenth more votes, and decide by it.

    Returns how many examples changed their decision.
    """
    policy_rows = RoundPolicy.objects.filter(
        round__state__in=JUDGED_STATES, policy__rule="dawid-skene"
    ).select_related("round__task")
    changed_count = 0
    for policy_row in filter(is_stale, policy_rows):
        is_at_work()  # a fit to many votes takes minutes
        changed_count += derive_round(round=Round.objects.get(pk=policy_row.round_id))
    return changed_count
