"""Counts of what waits for administrators to decide: tasks, communities and owners' metrics."""

from dynabench.communities.models import CommunityProposal
from evaluation.judges.custom_metrics.selectors import find_waiting_metrics
from tasks.models import TaskProposal


def count_waiting_proposals() -> int:
    """Return the number of tasks and communities that await a decision. One query."""
    tasks = TaskProposal.objects.filter(state=TaskProposal.State.WAITING)
    communities = CommunityProposal.objects.filter(state=CommunityProposal.State.WAITING)
    # A union has columns of one shape; `all`, as ids of different tables may be equal.
    task_ids = tasks.select_related(None).order_by().values("pk")
    community_ids = communities.select_related(None).order_by().values("pk")
    return task_ids.union(community_ids, all=True).count()


def count_waiting_metrics() -> int:
    """Return the number of owners' metrics that await approval. One query."""
    return find_waiting_metrics().count()


def count_waiting_decisions() -> int:
    """Return the number of proposals and metrics that await a decision. Two queries."""
    return count_waiting_proposals() + count_waiting_metrics()
