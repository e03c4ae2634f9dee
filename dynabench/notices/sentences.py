"""The sentences of notices and news, and the pages on which to act."""

from django.urls import reverse
from django.utils.translation import gettext as _

from core.numbers import format_percent
from dynabench.notices.assignments import AssignmentNews
from dynabench.notices.models import Notice
from dynabench.notices.registry import NEWS_KINDS, TASK_NOTICES, News

DigestItem = Notice | AssignmentNews | News


def build_sentence(notice: DigestItem) -> str:
    """Return the translated sentence of a notice or of news."""
    if isinstance(notice, News):
        return NEWS_KINDS[notice.kind].build_sentence(notice.words)
    if isinstance(notice, AssignmentNews):
        return _build_assignment_sentence(notice.kind)
    # Numbers only: the sentence is put together in the reader's language.
    numbers = {"round": notice.round, **notice.numbers}
    if "percent" in numbers:
        numbers["percent"] = format_percent(numbers["percent"] / 100, 0)
    return TASK_NOTICES[notice.kind].build_sentence(notice.numbers.get("count", 0)) % numbers


def _build_assignment_sentence(kind: str) -> str:
    """Return the sentence of news about an assignment."""
    words = {
        "assigned": _("You have a new assignment in this task."),
        "due": _("Your assignment in this task is due by tomorrow."),
        "overdue": _("Your assignment in this task is overdue."),
    }
    return words[kind]


def get_address(notice: DigestItem) -> str:
    """Return the URL of the page on which to act. May read the task from the database."""
    if isinstance(notice, News):
        return notice.path
    if isinstance(notice, AssignmentNews):
        return reverse("me:duties")
    return TASK_NOTICES[notice.kind].build_address(notice.task.code, notice.round)
