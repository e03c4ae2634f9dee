"""Reads about communities."""

from collections.abc import Sequence

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from core.accounts.models import User
from dynabench.communities.models import Community, CommunityProposal, CommunityTask
from dynabench.communities.permissions import JOINED_STATE, find_visible_communities
from tasks.models import Task, TaskMember
from tasks.permissions import OWNERS, Person, cache_roles
from tasks.selectors import find_visible_tasks

NEWS_PER_PAGE = 20
"""The number of news items on a page."""


def list_visible_entries(user: Person, community: Community) -> list[CommunityTask]:
    """Return the community's tasks that the person may see, in the order of joining.

    Also loads the person's roles in these tasks. Three queries.
    """
    # An order in a subquery costs time and changes nothing.
    visible_tasks = find_visible_tasks(user).order_by()
    # A community may hold private tasks, which others must not even see the names of.
    rows = community.entries.filter(state=JOINED_STATE, task__in=visible_tasks.values("pk"))
    entries = list(rows.select_related("task"))
    cache_roles(user, [entry.task for entry in entries])
    return entries


def count_visible_tasks(user: Person) -> list[tuple[Community, int]]:
    """Return the communities that the person may see, each with the number of tasks they may see.

    One query.
    """
    # A private task must not even be counted for others.
    visible_tasks = find_visible_tasks(user).order_by().values("pk")
    entries = CommunityTask.objects.filter(
        community=OuterRef("pk"), state=JOINED_STATE, task__in=visible_tasks
    )
    counts = entries.order_by().values("community").annotate(n=Count("pk")).values("n")
    # A subquery without rows gives NULL instead of 0.
    communities = find_visible_communities(user).annotate(task_count=Coalesce(Subquery(counts), 0))
    return [(community, community.task_count) for community in communities]


def find_communities(task: Task, user: Person) -> Sequence[Community]:
    """Return the communities of the task that the person may see."""
    joined_communities = CommunityTask.objects.filter(task=task, state=JOINED_STATE).values(
        "community"
    )
    return list(find_visible_communities(user).filter(pk__in=joined_communities))


def select_waiting_proposals(user: User) -> QuerySet[CommunityProposal]:
    """Return the proposals that administrators have to decide; none for other people."""
    waiting_proposals = CommunityProposal.objects.filter(state=CommunityProposal.State.WAITING)
    return waiting_proposals if user.is_superuser else waiting_proposals.none()


def select_owned_tasks(user: User) -> QuerySet[Task]:
    """Return the tasks that the person owns; all tasks for administrators."""
    if user.is_superuser:
        return Task.objects.all()
    owned_memberships = TaskMember.objects.select_effective().filter(user=user, role__in=OWNERS)
    return Task.objects.filter(pk__in=owned_memberships.values("task"))
