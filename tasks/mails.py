"""Mails to a task's members and to administrators about what waits for them."""

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

from core.accounts.languages import Letter, write_in_language_of
from core.accounts.models import User
from tasks.models import NoInvitations, Task

UNSUBSCRIBE_SALT = "tasks.invitations"
logger = logging.getLogger(__name__)


def mail_members(task: Task, roles: Collection[str], write: Letter) -> None:
    """Mail each member of the task with one of the roles, in their language, after the commit."""
    # People of a panel are no colleagues: nobody may write to them outside of their study.
    members = task.members.colleagues().standing().filter(role__in=roles, user__is_active=True)
    for member in members.select_related("user"):
        mail_person(member.user, write)


def mail_person(user: User, write: Letter) -> None:
    """Mail a person, in their language, after the commit."""
    mail_address(user.email, *write_in_language_of(user, write))


def mail_administrators(write: Letter) -> None:
    """Mail each administrator, in their language, after the commit."""
    for administrator in User.objects.filter(is_superuser=True, is_active=True):
        mail_person(administrator, write)


def build_decision_text(about: str, page: str) -> str:
    """Return the text of a mail about a pending decision. page: the URL where it is made."""
    words = _("Approve or decline it here:")
    return f"{about}\n\n{words}\n{page}\n"


def mail_invitation(address: str, write: Letter) -> None:
    """Mail an invitation after the commit, with a link to unsubscribe.

    Sends nothing to an address that has unsubscribed. The language is that of the address's
    account, or else of the current request.
    """
    if not accepts_invitations(address):
        return
    # The link holds a keyed digest and not the address: who forwards the mail reveals nothing, and
    # the row that refuses invitations does not either.
    unsubscribe_url = settings.SITE_URL + reverse(
        "uninvited", args=[signing.dumps(_hash_address(address), salt=UNSUBSCRIBE_SALT)]
    )

    def write_with_link() -> tuple[str, str]:
        subject, text = write()
        words = _("To get no invitations from this site:")
        return subject, f"{text}\n{words} {unsubscribe_url}\n"

    account = User.objects.filter(email__iexact=address).first()
    subject, text = write_in_language_of(account, write_with_link) if account else write_with_link()
    # After the commit: a mail about an invitation that was rolled back could not be accepted.
    transaction.on_commit(
        partial(_send, subject, text, address, build_unsubscribe_headers(unsubscribe_url))
    )


def invitation_text(name: str, *, opening: str, link: str, validity: str) -> tuple[str, str]:
    """Return the subject and the text of an invitation to a task or a study by its name.

    opening: who invites to what. validity: for whom the link works, and how long.
    """
    ignore = _("If you expected no invitation, ignore this mail.")
    subject = _("An invitation to “%(name)s”") % {"name": name}
    return subject, "\n\n".join([opening, link, validity, ignore]) + "\n"


def addresses_to_invite(addresses: Iterable[str]) -> list[str]:
    """Return the addresses in lower case, each once, in the order in which they were typed."""
    return list(dict.fromkeys(address.strip().lower() for address in addresses))


def accepts_invitations(address: str) -> bool:
    """Return whether the address may get invitations: its owner has not unsubscribed."""
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
    transaction.on_commit(partial(_send, subject, text, address))


def _send(subject: str, text: str, address: str, headers: Mapping[str, str] | None = None) -> None:
    try:
        # A line break in a name would be a header of its own, which Django refuses to send.
        line = " ".join(subject.split())
        EmailMessage(line, text, None, [address], headers=dict(headers or {})).send()
    except Exception:  # mail servers fail in many ways; what the mail reports stands
        logger.exception("No mail could be sent to a person")
