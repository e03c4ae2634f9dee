"""Whose votes may decide: not those of people whose address nobody has confirmed.

Accounts cost nothing where no address is asked for, and many of one person would decide alone. The
site's owner may let them count all the same (`UNCONFIRMED_VOTES`).
"""

from django.conf import settings
from django.utils.translation import gettext as _

from annotation.questions import has_study_at_work
from annotation.refusals import NotAllowed
from core.accounts.models import Annotator
from core.accounts.people import has_confirmed_address
from tasks.models import Task


class Unconfirmed(NotAllowed):
    """Raised for a person who has not confirmed their email address."""

    code = "unconfirmed"


def may_decide(annotator: Annotator, task: Task) -> bool:
    """Return whether the person's votes count in the task.

    Votes of a study's participants count while the study has work for them, because the study knows
    them. No query if a confirmed address is needed to sign in, or never needed.
    """
    user = annotator.user
    if user is None or user.is_of_panel or settings.UNCONFIRMED_VOTES:
        return True
    if settings.ACCOUNT_EMAIL_VERIFICATION != "optional" or has_confirmed_address(user):
        return True
    return has_study_at_work(annotator, task)


def check_may_decide(annotator: Annotator, task: Task) -> None:
    """Raise Unconfirmed if the person's votes do not count."""
    if not may_decide(annotator, task):
        raise Unconfirmed(_("Confirm your e-mail address on your account page before you vote."))
