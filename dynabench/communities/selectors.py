"""Reads about communities."""

from collections.abc import Sequence

from django.db.models import QuerySet

from core.accounts.models import User
from dynabench.communities.models import Community, CommunityProposal, CommunityTask
from dynabench.communities.permissions import IN, listed_communities
from tasks.models import Task, TaskMember
from tasks.permissions import OWNERS, Person, look_up_roles
from tasks.selectors import listed_tasks

NEWS = 20
"""Shown at most."""


def entries_for(user: Person, community: Community) -> list[CommunityTask]:
    """The tasks in the community that this person may see, with their roles in them; in the order
    in which they joined. Three queries.
    """
    seen = listed_tasks(user).order_by()
    rows = community.entries.filter(state=IN, task__in=seen.values("pk"))
    found = list(rows.select_related("task"))
    look_up_roles(user, [entry.task for entry in found])
    return found


def communities_of(task: Task, user: Person) -> Sequence[Community]:
    """The communities that hold the task, as far as the person may see them."""
    holding = CommunityTask.objects.filter(task=task, state=IN).values("community")
    return list(listed_communities(user).filter(pk__in=holding))


def waiting_proposals(user: User) -> QuerySet[CommunityProposal]:
    """What the administrators have to decide; nothing for others."""
    found = CommunityProposal.objects.filter(state=CommunityProposal.State.WAITING)
    return found if user.is_superuser else found.none()


def owned_tasks(user: User) -> QuerySet[Task]:
    """The tasks that this person owns; all of them for administrators."""
    if user.is_superuser:
        return Task.objects.all()
    mine = TaskMember.objects.standing().filter(user=user, role__in=OWNERS)
    return Task.objects.filter(pk__in=mine.values("task"))
