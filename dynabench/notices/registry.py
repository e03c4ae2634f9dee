"""The notices of tasks and the news of people: what each must say of itself.

`dynabench.notices.kinds` has a class for each. All are found by themselves.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from core.accounts.models import User
from core.registry import check_parts, register_member
from dynabench.notices.rules import RoundFacts
from tasks.models import Task

Words = str | Promise
TASKS_SWITCH = "tasks"
"""The switch of mails about tasks and assignments."""
MAX_NAME_CHARS = 10
"""In the name of a notice: the width of its column."""
MAX_SWITCH_CHARS = 80
"""In the names of all switches with spaces between them: the width of the column of those off."""
TASK_NOTICES: dict[str, "TaskNotice"] = {}
"""All notices of tasks by their names; the modules of `dynabench.notices.kinds` fill it."""
NEWS_KINDS: dict[str, "PersonalNews"] = {}
"""All news of people by their names, as above."""


class TaskNotice:
    """A kind of notice for people who run a task, open until its cause is over.

    Shown on the task's pages, sent to webhooks, and included in reviewers' digests. A
    subclass with a name registers itself, `class OpenReports(CountNotice, name="reports")`;
    raises TypeError if one of PARTS is missing. Subclasses without a name are base classes.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("label", "sentence", "page")

    name: ClassVar[str]
    label: ClassVar[Words]
    """What it is, in a few words: in the admin."""
    page: ClassVar[str]
    """The name of the page where one acts on it; its address has the task's code."""
    has_own_mail: ClassVar[bool] = False
    """It has a mail and a line of its own, and so is not in digests."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            register_member(cls, name, TASK_NOTICES, noun="notice", max_chars=MAX_NAME_CHARS)

    @abstractmethod
    def sentence(self, count: int) -> str:
        """Return the translated sentence, with `%(…)s` placeholders for the notice's numbers.

        count: the number that selects singular or plural.
        """

    def address(self, code: str, round: int) -> str:
        """Return the address of the page on which to act. round: the round's number, or 0."""
        return reverse(self.page, args=[code])


class RoundNotice(TaskNotice):
    """A kind of notice about a round."""

    PARTS = (*TaskNotice.PARTS, "numbers")

    @abstractmethod
    def numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return the placeholders of the sentence; None if there is nothing to report."""


class CountNotice(TaskNotice):
    """A kind of notice about a task, which counts something that should be 0."""

    PARTS = (*TaskNotice.PARTS, "count_by_task")

    @abstractmethod
    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the counts by task id; tasks with a count of 0 may be missing.

        One query, for any number of tasks.
        """


@dataclass(frozen=True)
class News:
    """A piece of news for one person.

    words: placeholders of its sentence, without texts that people wrote.
    """

    kind: str
    user: User
    task: Task
    began_at: datetime
    path: str
    words: Mapping[str, Any]

    @property
    def task_id(self) -> int:
        """Return the task's id, as `Notice.task_id` does."""
        return self.task.pk


class PersonalNews:
    """A kind of news for a person about their own work.

    Shown on the person's news page and in their digest, unless they switch it off.
    Subclasses register as those of `TaskNotice` do.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("label", "place", "read", "sentence")

    name: ClassVar[str]
    """Also that of its switch."""
    label: ClassVar[Words]
    """What is switched off, as a part of a sentence."""
    place: ClassVar[int]
    """Its place among the switches, from 1."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if not name:
            return
        check_parts(cls, cls.PARTS, "news", name)
        if name in NEWS_KINDS or name == TASKS_SWITCH:
            raise TypeError(f"There is news {name} already.")
        if len(" ".join((TASKS_SWITCH, *NEWS_KINDS, name))) > MAX_SWITCH_CHARS:
            raise TypeError(
                f"With {name} the switches' names have over {MAX_SWITCH_CHARS} letters."
            )
        cls.name = name
        NEWS_KINDS[name] = cls()

    @abstractmethod
    def read(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield the past week's news of this kind.

        user: the person; None for everybody who can get email.
        """

    @abstractmethod
    def sentence(self, words: Mapping[str, Any]) -> str:
        """Return the translated sentence. words: its placeholders."""


def notice_choices() -> list[tuple[str, Words]]:
    """Return (name, label) of each kind of task notice, for the model field."""
    return [(notice.name, notice.label) for notice in TASK_NOTICES.values()]


def list_kinds_with_mails() -> list[str]:
    """Return the names of the kinds of notices that send emails of their own."""
    return [notice.name for notice in TASK_NOTICES.values() if notice.has_own_mail]


def list_news_kinds() -> list[PersonalNews]:
    """Return all kinds of personal news, in the order in which they are shown."""
    return sorted(NEWS_KINDS.values(), key=lambda kind: kind.place)


def list_switches() -> dict[str, Words]:
    """Return the labels, by name, of the kinds that people can switch off in emails."""
    labels: dict[str, Words] = {TASKS_SWITCH: _("what your tasks and assignments need")}
    for kind in list_news_kinds():
        labels[kind.name] = kind.label
    return labels
