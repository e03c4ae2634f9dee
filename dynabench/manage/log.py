"""The log of a task for its members: who did what."""

import re
from collections.abc import Collection, Iterable, Mapping

from django import forms
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from annotation.models import Example
from core.accounts.models import LogEntry
from core.web.lists import ListFilter, list_page
from dynabench.manage.access import find_owned_task
from dynabench.manage.log_words import LOG_AREAS, describe_action, list_action_kinds
from dynabench.manage.selectors import summarise_inputs
from tasks.models import Task
from tasks.permissions import can_own, can_read, can_review

PAGE_SIZE = 50
UUID_PATTERN = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
MACHINE_KEYS = ("examples", "run")
"""Keys for programs, for example the examples that an action changed."""
ACCOUNT_KEYS = ("user",)
"""Keys that name an account. Only owners may know the members' accounts."""
PERSONAL_ACTIONS = (
    *("submission", "short_evaluation", "run", "weights", "webhook", "token", "person"),
)
"""Actions on people's own things. For example, it may be secret who submitted a model."""
REVIEWER_ACTIONS = ("gold", "consensus", "tag")
"""Actions that could reveal the answer to a judge."""


class LogFilter(ListFilter):
    """A form that selects the part of the log to show."""

    area = forms.ChoiceField(
        choices=[
            ("", _("All activity")),
            *((name, title) for name, (title, _kinds) in LOG_AREAS.items()),
        ],
        required=False,
        label=_("Show"),
    )


@require_safe
def show_log(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task's log, newest entries first."""
    task = find_owned_task(request, code, can_read)
    may_review = can_review(request.user, task)
    reviewed_codes = [code] if may_review else []
    filters = LogFilter(request)
    entries = find_readable_entries([code], reviewed_codes).select_related("actor__annotator")
    area = filters.cleaned_data["area"]
    if area:
        entries = entries.filter(_match_action_kinds(list_action_kinds(area)))
    page = list_page(request, entries.order_by("-pk"), size=PAGE_SIZE)
    hidden_keys: tuple[str, ...] = MACHINE_KEYS
    if not can_own(request.user, task):
        hidden_keys = MACHINE_KEYS + ACCOUNT_KEYS
    # Readers who don't review could learn from the text which examples are gold items.
    example_texts = read_example_texts(task, page) if may_review else {}
    entry_rows = []
    for entry in page:
        facts = [
            (name.replace("_", " ").capitalize(), value)
            for name, value in entry.data.items()
            if name not in hidden_keys
        ]
        target = shorten_target(entry.target, code)
        text = example_texts.get(entry.target, "")
        entry_rows.append((entry, describe_action(entry.action), target, text, facts))
    values = {
        "task": task,
        "page": page,
        "entries": entry_rows,
        "names": may_review,
        "filters": filters,
    }
    return render(request, "own/log.html", values)


def read_example_texts(task: Task, entries: Iterable[LogEntry]) -> Mapping[str, str]:
    """Return the texts of the examples that entries are about, by the entries' targets.

    At most one query. Texts of sensitive tasks are left out, so that nobody reads them unasked.
    """
    uuids = [entry.target for entry in entries if UUID_PATTERN.fullmatch(entry.target)]
    if not uuids or task.is_sensitive:
        return {}
    rows = Example.objects.filter(round__task=task, uuid__in=uuids).values_list("uuid", "inputs")
    return {str(uuid): summarise_inputs(task.config, inputs).text for uuid, inputs in rows}


def shorten_target(target: str, code: str) -> str:
    """Return the target of an entry without the task's code, and with short ids of examples.

    >>> shorten_target("nli round 2", "nli"), shorten_target("nli/round-1 v2", "nli")
    ('round 2', 'round-1 v2')
    """
    if UUID_PATTERN.fullmatch(target):
        return target[:8]
    for prefix in (f"{code} ", f"{code}/"):
        if target.startswith(prefix):
            return target.removeprefix(prefix)
    return target.removesuffix(f" of {code}")


def find_readable_entries(
    readable_codes: Collection[str], reviewed_codes: Collection[str]
) -> QuerySet[LogEntry]:
    """Return the log entries of tasks that a person may read.

    readable_codes: the codes of the tasks that the person may read. reviewed_codes: the codes of
    the tasks that the person reviews. Entries that reveal an answer are only included for reviewed
    tasks. Entries about people's own things, such as submissions, are never included.
    """
    is_open_to_readers = match_tasks(readable_codes) & ~_match_action_kinds(REVIEWER_ACTIONS)
    return LogEntry.objects.filter(match_tasks(reviewed_codes) | is_open_to_readers).exclude(
        _match_action_kinds(PERSONAL_ACTIONS)
    )


def match_tasks(codes: Collection[str]) -> Q:
    """Return a condition that selects the entries of these tasks.

    Older entries name their task only at the beginning of `target`.
    """
    # Entries from before the column `task` existed.
    is_older_entry = Q(target__in=codes)
    for code in codes:
        is_older_entry |= Q(target__startswith=f"{code} round ")
    return Q(task__in=codes) | Q(is_older_entry, task="")


def _match_action_kinds(kinds: Collection[str]) -> Q:
    """Return a condition that selects the actions that begin with one of these words and a dot."""
    return Q(action__regex=rf"^({'|'.join(kinds)})\.")
