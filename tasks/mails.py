"""Mail a task's members and administrators about pending decisions, and mail invitations."""

import logging
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from django.conf import settings
from django.core import signing
from django.core.mail import EmailMessage
from django.db import transaction
from django.urls import reverse
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from core.accounts.languages import WriteMail, write_in_user_language
from core.accounts.models import User
from tasks.models import NoInvitations, Task

UNSUBSCRIBE_SALT = "tasks.invitations"
logger = logging.getLogger(__name__)


def mail_members(task: Task, roles: Collection[str], write: WriteMail) -> None:
    """Mail each member of the task with one of the roles, in their language, after the commit."""
    # People of a panel are no colleagues: nobody may write to them outside of their study.
    members = (
        task.members.select_colleagues()
        .select_effective()
        .filter(role__in=roles, user__is_active=True)
    )
    for member in members.select_related("user"):
        mail_person(member.user, write)


def mail_person(user: User, write: WriteMail) -> None:
    """Mail a person, in their language, after the commit."""
    mail_address(user.email, *write_in_user_language(user, write))


def mail_administrators(write: WriteMail) -> None:
    """Mail each administrator, in their language, after the commit."""
    for administrator in User.objects.filter(is_superuser=True, is_active=True):
        mail_person(administrator, write)


def build_decision_text(subject_words: str, page: str) -> str:
    """Return the text of a mail about a pending decision. page: the URL on which to decide."""
    message = _("Approve or decline the request here:")
    return f"{subject_words}\n\n{message}\n{page}\n"


def mail_invitation(address: str, write: WriteMail) -> None:
    """Mail an invitation after the commit, with a link to unsubscribe.

    Sends nothing to an address that has unsubscribed. The language is that of the address's
    account or, without an account, of the current request.
    """
    if not can_receive_invitations(address):
        return
    # The link holds a keyed digest and not the address: who forwards the mail reveals nothing, and
    # the row that refuses invitations does not either.
    unsubscribe_url = settings.SITE_URL + reverse(
        "uninvited", args=[signing.dumps(_hash_address(address), salt=UNSUBSCRIBE_SALT)]
    )

    def write_with_link() -> tuple[str, str]:
        subject, text = write()
        message = _("Stop invitations from this site:")
        return subject, f"{text}\n{message} {unsubscribe_url}\n"

    account = User.objects.filter(email__iexact=address).first()
    subject, text = (
        write_in_user_language(account, write_with_link) if account else write_with_link()
    )
    # After the commit: a mail about an invitation that was rolled back could not be accepted.
    transaction.on_commit(
        partial(_send_mail, subject, text, address, build_unsubscribe_headers(unsubscribe_url))
    )


def build_invitation_text(
    name: str, *, opening_sentence: str, link: str, validity_sentence: str
) -> tuple[str, str]:
    """Return the subject and text of an invitation to the task or study `name`.

    opening_sentence: the sentence that says who invites, and to what. validity_sentence: the
    sentence that says whom the link is for, and how long it works.
    """
    unexpected_note = _("If you weren't expecting an invitation, ignore this email.")
    subject = _("You're invited to “%(name)s”") % {"name": name}
    return subject, "\n\n".join([opening_sentence, link, validity_sentence, unexpected_note]) + "\n"


def normalise_addresses(addresses: Iterable[str]) -> list[str]:
    """Return the addresses in lower case, each once, in their original order."""
    return list(dict.fromkeys(address.strip().lower() for address in addresses))


def can_receive_invitations(address: str) -> bool:
    """Return whether an address may get invitations. It may not if its owner has unsubscribed."""
    return not NoInvitations.objects.filter(digest=_hash_address(address)).exists()


def _hash_address(address: str) -> str:
    return salted_hmac(UNSUBSCRIBE_SALT, address.lower(), algorithm="sha256").hexdigest()


def build_unsubscribe_headers(url: str) -> dict[str, str]:
    """Return the headers that let a mail program unsubscribe with one click (RFC 8058)."""
    return {
        "List-Unsubscribe": f"<{url}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def read_unsubscribe_token(token: str) -> str:
    """Return the digest of the address in an unsubscribe link. Raises signing.BadSignature."""
    digest: str = signing.loads(token, salt=UNSUBSCRIBE_SALT)
    return digest


def refuse_invitations(*, digest: str) -> None:
    """Record that an address gets no more invitations. Idempotent; takes no lock."""
    NoInvitations.objects.get_or_create(digest=digest)


def mail_address(address: str, subject: str, text: str) -> None:
    """Mail an address after the commit."""
    transaction.on_commit(partial(_send_mail, subject, text, address))


def _send_mail(
    subject: str, text: str, address: str, headers: Mapping[str, str] | None = None
) -> None:
    try:
        # A line break in a name would be a header of its own, which Django refuses to send.
        subject_line = " ".join(subject.split())
        EmailMessage(subject_line, text, None, [address], headers=dict(headers or {})).send()
    except Exception:  # mail servers fail in many ways; what the mail reports stands
        logger.exception("No mail could be sent to a person")
