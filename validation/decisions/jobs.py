"""The daily job that refits Dawid and Skene's models after enough new votes."""

from core.jobs.keeper import announce_job
from core.periodic import register_daily
from tasks.models import Round
from validation.decisions.awaited import JUDGED_ROUND_STATES
from validation.decisions.second_opinion import is_stale
from validation.decisions.services import derive_round
from validation.models import RoundPolicy


@register_daily(
    counts="examples decided otherwise",
    why="With a tenth more votes Dawid and Skene's model may decide otherwise.",
)
def refit_second_opinions() -> int:
    """Refit Dawid and Skene's model in rounds with a tenth more votes, and decide by it.

    Returns how many examples changed their decision.
    """
    policy_rows = RoundPolicy.objects.filter(
        round__state__in=JUDGED_ROUND_STATES, policy__rule="dawid-skene"
    ).select_related("round__task")
    changed_count = 0
    for policy_row in filter(is_stale, policy_rows):
        announce_job()  # a fit to many votes takes minutes
        changed_count += derive_round(round=Round.objects.get(pk=policy_row.round_id))
    return changed_count
