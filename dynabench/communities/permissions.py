"""Permissions on communities: one function per question."""

from django.db.models import Q, QuerySet

from core.accounts.models import User
from core.accounts.people import has_confirmed_address
from dynabench.communities.models import Community, CommunityTask
from tasks.models import TaskMember
from tasks.permissions import Person

JOINED_STATE = CommunityTask.State.IN


def find_visible_communities(user: Person) -> QuerySet[Community]:
    """Return the communities that the person may see, by name. One query.

    These are the listed communities, the person's own, and those that the person's tasks have
    joined. Administrators see all.
    """
    if user.is_superuser:
        return Community.objects.all()
    if not isinstance(user, User):
        return Community.objects.filter(is_listed=True)
    own_tasks = TaskMember.objects.select_effective().filter(user=user).values("task")
    joined_communities = CommunityTask.objects.filter(
        state=JOINED_STATE, task__in=own_tasks
    ).values("community")
    # Subqueries: joins would list a community once for each of its owners and tasks.
    owned_communities = Community.objects.filter(owners=user).values("pk")
    return Community.objects.filter(
        Q(is_listed=True) | Q(pk__in=owned_communities) | Q(pk__in=joined_communities)
    )


def can_manage(user: Person, community: Community) -> bool:
    """Return whether the person may change the community and decide which tasks join it."""
    if not (isinstance(user, User) and user.is_active):
        return False
    return user.is_superuser or community.owners.filter(pk=user.pk).exists()


def can_propose(user: Person) -> bool:
    """Return whether the person may propose a community."""
    return isinstance(user, User) and user.is_active and has_confirmed_address(user)
