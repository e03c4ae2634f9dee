"""The list of a task's owners' pages: its entries, who sees them, and which one is current.

`templates/own/_side.html` draws the list at the side of each page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dynabench.adversaries.fit import can_be_attacked, can_run_adversaries
from dynabench.manage.next_step import NextStep, find_next_step
from dynabench.notices.manage_counts import count_waiting_work
from tasks.access import PermissionCheck
from tasks.config.schema import TaskConfig
from tasks.models import Round, Task
from tasks.permissions import (
    Person,
    can_edit,
    can_manage,
    can_oversee,
    can_own,
    can_read,
    can_review,
    can_see,
)

PAGE_PERMISSIONS: Mapping[str, PermissionCheck] = {
    "leaderboard:arena": can_see,
    "own:arena": can_manage,
    "own:arena-voters": can_manage,
    "own:arena-conversations": can_review,
    "own:arena-judges": can_edit,
    "own:dashboard": can_oversee,
    "own:rounds": can_oversee,
    "own:texts": can_oversee,
    "own:targets": can_manage,
    "own:review": can_review,
    "own:results": can_read,
    "own:reports": can_review,
    "own:annotators": can_review,
    "own:second-opinion": can_review,
    # It shows what votes would decide, so a blind owner may not see it.
    "own:policy": lambda user, task: can_edit(user, task) and can_read(user, task),
    "own-failures:weak-spots": can_read,
    "evaluation:export": can_read,
    "evaluation:trainings": can_edit,
    "evaluation:sets": can_edit,
    "evaluation:metrics": can_edit,
    "evaluation:own-workers": can_own,
    "evaluation:llm-judges": can_edit,
    "own:config": can_edit,
    # Findings tell of votes, too.
    "own-campaigns:campaigns": lambda user, task: can_own(user, task) and can_read(user, task),
    "own-adversaries:adversaries": can_run_adversaries,
    "own-mixed:arms": can_run_adversaries,
    "own-studies:studies": lambda user, task: can_own(user, task) and can_read(user, task),
    "own:access": can_manage,
    "own:log": can_read,
    "own:delete": can_own,
    "admin:tasks_task_change": can_read,
}
"""The permission check of each view, by the view's name."""


def _fits_every_task(config: TaskConfig) -> bool:
    return True


def _is_arena(config: TaskConfig) -> bool:
    return config.kind == "arena"


def _collects_examples(config: TaskConfig) -> bool:
    return config.kind != "arena"


def _needs_texts(config: TaskConfig) -> bool:
    """Return whether people write about texts that owners import."""
    return _has_models(config) and bool(config.context)


def _has_models(config: TaskConfig) -> bool:
    """Return whether people write against models.

    In tasks that only judge rows, no model answers.
    """
    return config.kind != "arena" and not config.has_rows_to_judge


@dataclass(frozen=True)
class SidePage:
    """An entry of the list.

    view: the name of its view. children: the names of views that belong to the entry; `*` at the
    end matches any ending. is_for: returns whether tasks with this configuration have the entry.
    count_key: the key of its number of waiting things, or "".
    """

    view: str
    title: str | Promise
    children: Sequence[str] = ()
    is_for: Callable[[TaskConfig], bool] = _collects_examples
    count_key: str = ""

    def includes_view(self, view_name: str) -> bool:
        """Return whether the view with this name belongs to the entry."""
        if view_name == self.view:
            return True
        for child in self.children:
            if child.endswith("*") and view_name.startswith(child[:-1]):
                return True
            if view_name == child:
                return True
        return False

    def build_url(self, task: Task) -> str:
        """Return the URL of the entry's page in this task."""
        # The database's pages name a task by its id.
        if self.view.startswith("admin:"):
            return reverse(self.view, args=[task.pk])
        return reverse(self.view, args=[task.code])


@dataclass(frozen=True)
class SideGroup:
    """A group of entries. title: "" for the first group, which has one entry."""

    name: str
    title: str | Promise
    pages: Sequence[SidePage]


SIDE_GROUPS = (
    SideGroup(
        "overview",
        "",
        (SidePage("own:dashboard", _("Overview"), ("own:tiles", "own:dashboard-chart")),),
    ),
    SideGroup(
        "collect",
        # Translators: heading of a list: rounds, texts, models, campaigns
        _("Collect"),
        (
            SidePage(
                "own:rounds",
                _("Rounds"),
                (
                    "own:round-*",
                    "own:policy",
                    "own:vote-draw",
                    "own-mixed:*",
                    "own:second-opinion",
                    "own:rows*",
                    "own:tool-import*",
                    "evaluation:release*",
                    "evaluation:export*",
                ),
            ),
            SidePage(
                "own:texts",
                # Translators: noun: the texts that people write about
                _("Texts"),
                ("own:contexts*",),
                _needs_texts,
            ),
            SidePage(
                "own:targets",
                _("Models to fool"),
                ("own:target-*", "own:generator", "own:labelled*"),
                _has_models,
            ),
            SidePage("own:arena", _("Models"), ("own:arena-model",), _is_arena),
            SidePage(
                "own-adversaries:adversaries",
                # Translators: programs that search for texts that models get wrong
                _("Adversaries"),
                ("own-adversaries:*",),
                can_be_attacked,
            ),
            SidePage(
                "own-campaigns:campaigns", _("Campaigns"), ("own-campaigns:*",), _fits_every_task
            ),
            # Translators: noun: randomised comparisons of ways to work
            SidePage("own-studies:studies", _("Studies"), ("own-studies:*",), _fits_every_task),
        ),
    ),
    SideGroup(
        "check",
        # Translators: heading of a list: review, reports, people
        _("Check"),
        (
            SidePage(
                "own:review",
                # Translators: noun: the examples that need a decision
                _("Review"),
                ("own:review-*", "own:discussion", "own:comment"),
                count_key="review",
            ),
            SidePage("own:reports", _("Reports"), ("own:report-resolve",), count_key="reports"),
            SidePage("own:annotators", _("People"), ("own:people-file",)),
            SidePage("own:arena-voters", _("Voters"), ("own:arena-gold*",), _is_arena),
            SidePage(
                "own:arena-conversations",
                _("Conversations"),
                ("own:arena-conversation",),
                _is_arena,
            ),
        ),
    ),
    SideGroup(
        "measure",
        # Translators: heading of a list: results, test sets, metrics
        _("Measure"),
        (
            SidePage("leaderboard:arena", _("Ranking"), (), _is_arena),
            SidePage("own:arena-judges", _("LLM judges"), ("own:arena-judge*",), _is_arena),
            SidePage("own:results", _("Results")),
            SidePage(
                "own-failures:weak-spots",
                # Translators: kinds of texts on which a model errs more often
                _("Weak spots"),
                ("own-failures:*",),
                _has_models,
            ),
            SidePage(
                "evaluation:sets",
                _("Test sets"),
                (
                    "evaluation:set",
                    "evaluation:set-*",
                    "evaluation:paraphrases*",
                    "evaluation:ruler*",
                ),
                _has_models,
            ),
            SidePage(
                "evaluation:metrics",
                _("Metrics"),
                ("evaluation:metric-*", "evaluation:llm-judge*"),
                _has_models,
            ),
            SidePage(
                "evaluation:trainings",
                _("Training"),
                ("evaluation:train", "evaluation:training", "evaluation:training-chart"),
                _has_models,
            ),
            SidePage(
                "evaluation:own-workers",
                # Translators: machines of people, which run their models
                _("Runners"),
                ("evaluation:own-worker-remove",),
                _has_models,
            ),
        ),
    ),
    SideGroup(
        "settings",
        _("Settings"),
        (
            SidePage("own:config", _("Configuration"), ("own:config-*",), _fits_every_task),
            SidePage(
                "own:access",
                _("Members"),
                (
                    "own:approval-ask",
                    "own:blind",
                    "own:member-*",
                    "own:duties",
                    "own:duty*",
                    "own:invitation*",
                ),
                _fits_every_task,
            ),
            SidePage("own:log", _("Activity"), (), _fits_every_task),
            # Translators: page: delete the task
            SidePage("own:delete", _("Delete"), (), _fits_every_task),
            SidePage("admin:tasks_task_change", _("Open in database view"), (), _fits_every_task),
        ),
    ),
)
"""The groups of the list, from top to bottom."""


@dataclass(frozen=True)
class SideItem:
    """An entry as one reader sees it. count: the number of things that wait there."""

    view: str
    title: str | Promise
    url: str
    is_current: bool
    count: int


@dataclass(frozen=True)
class SideList:
    """The list as one reader sees it.

    groups: each group with its entries. current_item: the current entry, or None. step: the round's
    next step, or None.
    """

    groups: Sequence[tuple[SideGroup, Sequence[SideItem]]] = field(default_factory=list)
    current_item: SideItem | None = None
    step: NextStep | None = None


def build_side_list(user: Person, task: Task, view_name: str) -> SideList:
    """Return the list for a reader of an owners' page. At most two queries.

    view_name: the page's view name, from `resolver_match`.
    """
    counts = _count_waiting(user, task)
    groups, current_item = [], None
    for group in SIDE_GROUPS:
        items = []
        for page in group.pages:
            if not page.is_for(task.config) or not PAGE_PERMISSIONS[page.view](user, task):
                continue
            item = SideItem(
                view=page.view,
                title=page.title,
                url=page.build_url(task),
                is_current=page.includes_view(view_name),
                count=counts.get(page.count_key, 0),
            )
            items.append(item)
            if item.is_current:
                current_item = item
        if items:
            groups.append((group, items))
    return SideList(groups, current_item, _find_next_step(user, task))


def _count_waiting(user: Person, task: Task) -> dict[str, int]:
    """Return the number of waiting things by the key of an entry. At most one query.

    Empty for people who may not review the task, and for arenas.
    """
    # Blind owners may not review, so they learn no number either.
    if not can_review(user, task) or _is_arena(task.config):
        return {}
    work = count_waiting_work([task.pk])[task.pk]
    return {"review": work.undecided_count, "reports": work.report_count}


def _find_next_step(user: Person, task: Task) -> NextStep | None:
    """Return the next step of the open or paused round, or else of the newest.

    None for people who may not edit the task, for arenas, and if there is no next step. At most one
    query.
    """
    if _is_arena(task.config) or not can_edit(user, task):
        return None
    rounds = list(task.rounds.order_by("-number"))
    for round in rounds:
        round.task = task  # saves a query for each
    live_rounds = [
        round for round in rounds if round.state in (Round.State.OPEN, Round.State.PAUSED)
    ]
    for round in (live_rounds or rounds)[:1]:
        return find_next_step(user, round, rounds)
    return None
