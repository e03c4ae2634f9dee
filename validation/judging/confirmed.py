"""The rule that only people with a confirmed email address can vote.

Otherwise one person with many accounts could decide examples. The site's operator can turn
the rule off (`UNCONFIRMED_VOTES`).
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


def do_votes_count(annotator: Annotator, task: Task) -> bool:
    """Return whether the person's votes count in the task.

    Votes of a study's participants count while the study has work for them, because the study knows
    them. No query if a confirmed address is needed to sign in, or never needed.
    """
    user = annotator.user
    if user is None or user.is_panel_participant or settings.UNCONFIRMED_VOTES:
        return True
    if settings.ACCOUNT_EMAIL_VERIFICATION != "optional" or has_confirmed_address(user):
        return True
    return has_study_at_work(annotator, task)


def check_votes_count(annotator: Annotator, task: Task) -> None:
    """Raise Unconfirmed if the person's votes do not count."""
    if not do_votes_count(annotator, task):
        raise Unconfirmed(_("Confirm your email address on your account page before you vote."))
