"""The dashboard's list of what a task lacks before its first round opens."""

from typing import Any, NamedTuple

from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from tasks.models import Context, Round, Task
from tasks.permissions import JUDGES, OWNERS, can_edit
from tasks.rounds.launch import Preparation, find_gaps
from tasks.selectors import PLANNED_STATES

GAP_WORDS = {
    "rows": gettext_noop("Import the rows to be judged. People can judge them at once."),
    "contexts": gettext_noop("The round has no contexts, the texts that people write about."),
    "one_target": gettext_noop("People talk to one model: the round needs exactly one target."),
    "target": gettext_noop("The round has no target, so it only collects: nobody can be fooled."),
    "instructions": gettext_noop("There are no instructions."),
    "examples": gettext_noop("The page of the task shows no good example."),
    "judges": gettext_noop(
        "Judges needed to decide: %(needed)d, besides the author. Members who can judge: "
        "%(judges)d. Invite people, or judge blind yourself."
    ),
    "row_judges": gettext_noop(
        "Judges needed to decide: %(needed)d. Members who can judge: %(judges)d. Invite people, or "
        "judge blind yourself."
    ),
}
CONFIG_GAPS = ("instructions", "examples")


class MissingThing(NamedTuple):
    """A missing part of a task, with the page where it is added and whether it is required."""

    gap: str
    words: str
    url: str
    is_needed: bool


def build_launch_list(request: HttpRequest, task: Task, rounds: list[Round]) -> dict[str, Any]:
    """Return the values of own/setup/_launch.html.

    Empty if a round was opened, for an arena, and for people who may not edit the task.
    """
    is_arena = task.config.kind == "arena"
    was_opened = any(round.state not in PLANNED_STATES for round in rounds)
    if is_arena or was_opened or not can_edit(request.user, task):
        return {}
    # The first round is the one to open, whatever else is planned.
    round = min(rounds, key=lambda round: round.number, default=None)
    if round is None:
        return {}
    preparation = _measure_preparation(task, round)
    lines, may_open = [], True
    for gap in find_gaps(task.config, preparation):
        words = _describe_gap(gap.name, task, preparation)
        lines.append(MissingThing(gap.name, words, _build_gap_url(gap.name, round), gap.is_needed))
        if gap.is_needed:
            may_open = False
    return {"launch": lines, "first": round, "may_open": may_open}


def _measure_preparation(task: Task, round: Round) -> Preparation:
    judges = None  # not known: everybody may judge in a task that everybody sees
    if not task.is_visible:
        members = task.members.colleagues().standing()
        judges = members.filter(Q(role__in=JUDGES) | Q(role__in=OWNERS, is_blind=True)).count()
    contexts = Context.objects.filter(round=round, is_retired=False).count()
    return Preparation(contexts, round.round_targets.count(), judges)


def _describe_gap(gap: str, task: Task, preparation: Preparation) -> str:
    if gap != "judges":
        return _(GAP_WORDS[gap])
    numbers = {"needed": task.config.validation.votes.needed, "judges": preparation.judges}
    if task.config.judges_rows:  # nobody wrote the rows, so there is no author to leave out
        gap = "row_judges"
    return _(GAP_WORDS[gap]) % numbers


def _build_gap_url(gap: str, round: Round) -> str:
    code = round.task.code
    if gap in CONFIG_GAPS:
        return reverse("own:config", args=[code])
    if gap == "judges":
        return reverse("own:access", args=[code], fragment="members")
    # A target is registered before a round can choose it.
    if gap not in ("rows", "contexts") and not round.task.targets.exists():
        return reverse("own:targets", args=[code])
    page = {"rows": "own:rows", "contexts": "own:contexts"}.get(gap, "own:round-edit")
    return reverse(page, args=[code, round.number])
