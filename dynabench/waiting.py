"""What waits for administrators to decide: tasks, communities, metrics of owners."""

from dynabench.communities.models import CommunityProposal
from evaluation.judges.custom_metrics.selectors import find_waiting_metrics
from tasks.models import TaskProposal


def count_waiting_decisions() -> int:
    """Return the number of proposals that await a decision. One query."""
    tasks = TaskProposal.objects.filter(state=TaskProposal.State.WAITING)
    communities = CommunityProposal.objects.filter(state=CommunityProposal.State.WAITING)
    metrics = find_waiting_metrics()
    # A union has columns of one shape; `all`, as ids of different tables may be equal.
    ids = [rows.select_related(None).order_by().values("pk") for rows in (communities, metrics)]
    first = tasks.select_related(None).order_by().values("pk")
    return first.union(*ids, all=True).count()
