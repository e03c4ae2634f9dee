"""The base classes of task notices and personal news.

`dynabench.notices.kinds` has one class per kind. Defining a class registers it.
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
from dynabench.notices.round_warnings import RoundFacts
from tasks.models import Task

Words = str | Promise
TASKS_SWITCH = "tasks"
"""The name of the switch for emails about tasks and assignments."""
MAX_NAME_CHARS = 10
"""The maximum length of a notice's name: the width of its database column."""
MAX_SWITCH_CHARS = 80
"""The maximum length of all switches' names, joined by spaces: the width of the column `off`."""
TASK_NOTICES: dict[str, "TaskNotice"] = {}
"""All kinds of task notices by name. Importing `dynabench.notices.kinds` fills it."""
NEWS_KINDS: dict[str, "PersonalNews"] = {}
"""All kinds of personal news by name. Importing `dynabench.notices.kinds` fills it."""


class TaskNotice:
    """A kind of notice for people who run a task, open until its cause is over.

    Shown on the task's pages, sent to webhooks, and included in reviewers' digests. A
    subclass with a name, `class OpenReports(CountNotice, name="reports")`, is registered. Raises
    TypeError if one of PARTS is missing. Subclasses without a name are base classes.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("label", "build_sentence", "page")

    name: ClassVar[str]
    label: ClassVar[Words]
    """The notice's title in the admin."""
    page: ClassVar[str]
    """The URL name of the page on which to act. Its URL contains the task's code."""
    has_own_mail: ClassVar[bool] = False
    """Whether it has its own email and its own line on pages, so that digests leave it out."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            register_member(cls, name, TASK_NOTICES, noun="notice", max_chars=MAX_NAME_CHARS)

    @abstractmethod
    def build_sentence(self, count: int) -> str:
        """Return the translated sentence, with `%(…)s` placeholders for the notice's numbers.

        count: the number that selects singular or plural.
        """

    def build_address(self, code: str, round: int) -> str:
        """Return the URL of the page on which to act. round: the round's number, or 0."""
        return reverse(self.page, args=[code])


class RoundNotice(TaskNotice):
    """A kind of notice about one round."""

    PARTS = (*TaskNotice.PARTS, "get_numbers")

    @abstractmethod
    def get_numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return the values of the sentence's placeholders; None if there is nothing to report."""


class CountNotice(TaskNotice):
    """A kind of notice about a task. It counts something, and is open unless the count is 0."""

    PARTS = (*TaskNotice.PARTS, "count_by_task")

    @abstractmethod
    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the counts by task id; tasks with a count of 0 may be missing.

        Takes one query for any number of tasks.
        """


@dataclass(frozen=True)
class News:
    """A piece of news for one person.

    path: the page on which to act. words: the values of its sentence's placeholders, without texts
    that people wrote.
    """

    kind: str
    user: User
    task: Task
    began_at: datetime
    path: str
    words: Mapping[str, Any]

    @property
    def task_id(self) -> int:
        """Return the task's id, like `Notice.task_id`."""
        return self.task.pk


class PersonalNews:
    """A kind of news for a person about their own work.

    Shown on the person's news page and in their digest, unless they switch it off.
    Subclasses are registered like those of `TaskNotice`.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("label", "place", "read_news", "build_sentence")

    name: ClassVar[str]
    """The name of this kind and of its switch."""
    label: ClassVar[Words]
    """What the switch turns off, as a part of a sentence."""
    place: ClassVar[int]
    """The position among the switches, from 1."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if not name:
            return
        check_parts(cls, cls.PARTS, "news", name)
        if name in NEWS_KINDS or name == TASKS_SWITCH:
            raise TypeError(f"There is news {name} already.")
        # A person may switch off all of them, and the names share one column.
        if len(" ".join((TASKS_SWITCH, *NEWS_KINDS, name))) > MAX_SWITCH_CHARS:
            raise TypeError(
                f"With {name} the switches' names have over {MAX_SWITCH_CHARS} letters."
            )
        cls.name = name
        # One instance is enough for everybody, as it keeps nothing.
        NEWS_KINDS[name] = cls()

    @abstractmethod
    def read_news(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield the past week's news of this kind.

        user: the person; None for everybody who can get email.
        """

    @abstractmethod
    def build_sentence(self, words: Mapping[str, Any]) -> str:
        """Return the translated sentence. words: the values of its placeholders."""


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
    labels: dict[str, Words] = {TASKS_SWITCH: _("My tasks and assignments")}
    for kind in list_news_kinds():
        labels[kind.name] = kind.label
    return labels
