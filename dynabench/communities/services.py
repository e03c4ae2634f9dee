"""Writes about communities. Each service first checks `can_manage`, except requests to join."""

import hashlib
from collections.abc import Mapping

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.files.base import ContentFile
from django.db import transaction
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.proposal_services import build_decided_error
from core.accounts.services import log
from core.errors import Invalid, Refused
from core.text.taken_names import check_name, check_name_is_free, lock_names
from dynabench.communities.models import Community, CommunityTask, Post
from dynabench.communities.permissions import JOINED_STATE, can_manage, find_visible_communities
from dynabench.communities.rules import MAX_WEIGHT
from tasks.contexts.media.services import decode_upload
from tasks.mails import build_decision_text, mail_person
from tasks.models import Task
from tasks.permissions import can_own, check_approval
from tasks.services import find_account

MAX_TRACKS = 20
MAX_TRACK_CHARS = 60


def check_can_manage(actor: User, community: Community) -> None:
    """Check that the person manages the community. Raises Refused."""
    if not can_manage(actor, community):
        raise Refused(
            _("Only owners of the community can do this. Ask one of them."),
            code="owners",
            status=403,
        )


@transaction.atomic
def change_community(
    *,
    community: Community,
    actor: User,
    name: str,
    summary: str,
    text: str,
    is_listed: bool,
    tracks: list[str],
) -> None:
    """Change a community's name, text, visibility and tracks.

    tracks: the choices for joint submissions; empty for none.

    Does not lock the community: the last change wins. Locks the names of communities if a listed
    one is renamed or an unlisted one becomes listed. Raises Refused or Invalid.
    """
    check_can_manage(actor, community)
    if len(tracks) > MAX_TRACKS or any(len(track) > MAX_TRACK_CHARS for track in tracks):
        message = _("Enter at most %(most)d tracks of up to %(long)d characters each.")
        limits = {"most": MAX_TRACKS, "long": MAX_TRACK_CHARS}
        raise Invalid(message % limits, field="tracks")
    if len(set(tracks)) < len(tracks):
        raise Invalid(_("Two tracks have the same name. Change one of them."), field="tracks")
    is_renamed = name != community.name
    if is_renamed:
        name = check_name(name)
    if is_listed and (is_renamed or not community.is_listed):
        _check_name_is_free(name, community)
    community.name, community.summary, community.text = name, summary, text
    community.is_listed, community.tracks = is_listed, tracks
    community.save(update_fields=["name", "summary", "text", "is_listed", "tracks"])
    log(actor, "community.changed", community, is_listed=is_listed)


def _check_name_is_free(name: str, community: Community) -> None:
    """Check that no listed community has this name or one that looks like it.

    Locks the names of communities until the transaction ends. Raises Invalid.
    """
    # Two communities that take names alike at once would both find theirs free.
    lock_names("communities")
    other_communities = Community.objects.filter(is_listed=True).exclude(pk=community.pk)
    check_name_is_free(name, other_communities.values_list("name", flat=True))


def set_logo(*, community: Community, actor: User, data: bytes | None) -> None:
    """Store a logo, decoded and re-encoded; None deletes it.

    Takes no lock: the last logo wins. Raises Refused, and Invalid if the file is not a picture.
    """
    check_can_manage(actor, community)
    old_name = str(community.logo.name or "")
    if data is None:
        community.logo.name = ""
    else:
        picture = decode_upload("image", data)
        # By its digest, so that browsers never show an old logo under a new address.
        name = f"{hashlib.sha256(picture.data).hexdigest()}.{picture.mime.partition('/')[2]}"
        community.logo.save(name, ContentFile(picture.data), save=False)
    with transaction.atomic():
        community.save(update_fields=["logo"])
        log(actor, "community.logo", community)
    # After the transaction, as a file cannot be brought back.
    if old_name and old_name != community.logo.name:
        community.logo.storage.delete(old_name)


@transaction.atomic
def add_owner(*, community: Community, actor: User, email: str) -> None:
    """Make the person with this confirmed address an owner.

    Takes no lock. Raises Refused or Invalid.
    """
    check_can_manage(actor, community)
    user = find_account(email)
    # Otherwise an account with a stranger's address would become an owner in their place.
    confirmed_addresses = EmailAddress.objects.filter(user=user, email__iexact=email, verified=True)
    if settings.ACCOUNT_EMAIL_VERIFICATION != "none" and not confirmed_addresses.exists():
        raise Invalid(
            _("This person hasn't confirmed this address yet. Ask them to confirm it."),
            field="email",
        )
    community.owners.add(user)
    log(actor, "community.owner", community, user=user.email, person=user.pk, is_owner=True)


@transaction.atomic
def remove_owner(*, community: Community, actor: User, user: User) -> None:
    """Remove an owner. Raises Refused for the last one.

    Locks the community, so that two owners cannot remove each other.
    """
    locked_community = Community.objects.select_for_update(of=("self",), no_key=True).get(
        pk=community.pk
    )
    # Under the lock: another owner may have removed the actor a moment ago.
    check_can_manage(actor, locked_community)
    # Counted under the lock, so that two owners cannot both leave.
    if not locked_community.owners.exclude(pk=user.pk).exists():
        raise Refused(_("A community needs an owner. Add another owner first."), code="owners")
    locked_community.owners.remove(user)
    log(actor, "community.owner", locked_community, user=user.email, person=user.pk, is_owner=False)


@transaction.atomic
def post_news(*, community: Community, actor: User, title: str, text: str) -> Post:
    """Post a news item. Takes no lock. Raises Refused."""
    check_can_manage(actor, community)
    title = check_name(title, "title")
    post = Post.objects.create(community=community, author=actor, title=title, text=text)
    log(actor, "community.post", community, title=title)
    return post


@transaction.atomic
def delete_post(*, post: Post, actor: User) -> None:
    """Delete a news item. Takes no lock. Raises Refused."""
    check_can_manage(actor, post.community)
    log(actor, "community.post_deleted", post.community, title=post.title)
    post.delete()


@transaction.atomic
def ask_to_join(*, community: Community, task: Task, actor: User) -> CommunityTask:
    """Request that a task join; it joins at once if the actor also owns the community.

    Otherwise the community's owners are emailed. actor: an owner of the task. Takes no lock: a
    unique constraint allows one entry per task. Raises Refused.
    """
    if not find_visible_communities(actor).filter(pk=community.pk).exists():
        raise Refused(
            _("This community doesn't exist. Choose another."), code="community", status=404
        )
    if not can_own(actor, task):
        raise Refused(
            _("Only owners of a task can add it to a community. Ask one of them."),
            code="owners",
            status=403,
        )
    check_approval(task)
    may_manage = can_manage(actor, community)
    entry, is_new = CommunityTask.objects.get_or_create(
        community=community,
        task=task,
        defaults={"state": JOINED_STATE if may_manage else CommunityTask.State.ASKED},
    )
    if not is_new:
        raise Refused(
            _("The task is already in the community or has asked to join."), code="exists"
        )
    log(actor, f"community.task_{entry.state}", task, community=community.slug)
    if not may_manage:
        page = f"{settings.SITE_URL}/communities/{community.slug}/manage/"

        def write_mail() -> tuple[str, str]:
            names = {"task": task.name, "community": community.name}
            subject = _("Request to join %(community)s") % names
            body = _("The owners of %(task)s would like it to join %(community)s.") % names
            return subject, build_decision_text(body, page)

        for owner in community.owners.filter(is_active=True):
            mail_person(owner, write_mail)
    return entry


@transaction.atomic
def admit_task(*, entry: CommunityTask, actor: User) -> None:
    """Admit a task that has requested to join.

    Takes no lock: one conditional update. Raises Refused.
    """
    check_can_manage(actor, entry.community)
    # Of two owners who decide at once, the second finds no task that asks.
    waiting_entries = CommunityTask.objects.filter(pk=entry.pk, state=CommunityTask.State.ASKED)
    if not waiting_entries.update(state=JOINED_STATE):
        raise build_decided_error()
    log(actor, "community.task_in", entry.task, community=entry.community.slug)


@transaction.atomic
def remove_entry(*, entry: CommunityTask, actor: User) -> None:
    """Decline a task's request or remove a task.

    For owners of the community or of the task. Takes no lock. Raises Refused.
    """
    if not can_own(actor, entry.task):
        check_can_manage(actor, entry.community)
    log(actor, "community.task_out", entry.task, community=entry.community.slug)
    CommunityTask.objects.filter(pk=entry.pk).delete()


@transaction.atomic
def set_weights(*, community: Community, actor: User, weights: Mapping[int, float]) -> None:
    """Set the board's default weights, given by entry id. Raises Refused or Invalid."""
    check_can_manage(actor, community)
    if not all(0 <= weight <= MAX_WEIGHT for weight in weights.values()):
        raise Invalid(
            _("Enter a weight from 0 to %(most)d.") % {"most": MAX_WEIGHT}, field="weights"
        )
    entries = {entry.pk: entry for entry in community.entries.filter(pk__in=weights)}
    for pk, entry in entries.items():
        entry.weight = weights[pk]
    # One query; ids of another community's entries were left out above.
    CommunityTask.objects.bulk_update(entries.values(), ["weight"])
    log(actor, "community.weights", community)
