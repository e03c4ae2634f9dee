"""Notices and news in words, and the page where one acts on each."""

from django.urls import reverse
from django.utils.translation import gettext as _

from dynabench.notices.assignments import AssignmentNews
from dynabench.notices.models import Notice
from dynabench.notices.registry import NEWS_KINDS, TASK_NOTICES, News

DigestItem = Notice | AssignmentNews | News


def build_sentence(notice: DigestItem) -> str:
    """Return the translated sentence of a notice or of news."""
    if isinstance(notice, News):
        return NEWS_KINDS[notice.kind].sentence(notice.words)
    if isinstance(notice, AssignmentNews):
        return _build_assignment_sentence(notice.kind)
    # Numbers only: the sentence is put together in the reader's language.
    numbers = {"round": notice.round, **notice.numbers}
    return TASK_NOTICES[notice.kind].sentence(notice.numbers.get("count", 0)) % numbers


def _build_assignment_sentence(kind: str) -> str:
    """Return the sentence of news about an assignment."""
    words = {
        "assigned": _("You are asked for work in this task."),
        "due": _("Your assignment in this task is due by tomorrow."),
        "overdue": _("Your assignment in this task is overdue."),
    }
    return words[kind]


def get_address(notice: DigestItem) -> str:
    """Return the address of the page on which to act. Reads the task."""
    if isinstance(notice, News):
        return notice.path
    if isinstance(notice, AssignmentNews):
        return reverse("me:duties")
    return TASK_NOTICES[notice.kind].address(notice.task.code, notice.round)
