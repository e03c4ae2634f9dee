"""The dashboard's list of what a task needs before its first round opens."""

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
from tasks.targets.sample_judges import find_sample_judge

GAP_WORDS = {
    "rows": gettext_noop("Import the rows to judge. People can start judging at once."),
    "contexts": gettext_noop("Add texts to the round. People write about these texts."),
    "one_target": gettext_noop("Choose exactly one model. People judge its answers."),
    "sample_judge": gettext_noop(
        "Add the judge model that the configuration names, but not as a model to fool."
    ),
    "target": gettext_noop(
        "Choose a model to fool. Without one, the round only collects examples."
    ),
    "instructions": gettext_noop("Add instructions for writers."),
    "examples": gettext_noop("Add a good example for the task's page."),
    "judges": gettext_noop(
        "Judges needed per example, besides the author: %(needed)d. Members who can "
        "judge: %(judges)d. Invite people, or turn on blind judging to judge examples "
        "yourself."
    ),
    "row_judges": gettext_noop(
        "Judges needed per row: %(needed)d. Members who can judge: %(judges)d. Invite "
        "people, or turn on blind judging to judge rows yourself."
    ),
}
CONFIG_GAPS = ("instructions", "examples")


class MissingPart(NamedTuple):
    """Something that a task lacks.

    gap: its key. url: the page where it is added. is_needed: whether the round cannot open without
    it.
    """

    gap: str
    words: str
    url: str
    is_needed: bool


def build_launch_list(request: HttpRequest, task: Task, rounds: list[Round]) -> dict[str, Any]:
    """Return the values of the template own/setup/_launch.html.

    The dictionary is empty without a planned round, after a round was opened, and for an arena. It
    is also empty for people who may not edit the task.
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
        lines.append(MissingPart(gap.name, words, _build_gap_url(gap.name, round), gap.is_needed))
        if gap.is_needed:
            may_open = False
    return {"launch": lines, "first": round, "may_open": may_open}


def _measure_preparation(task: Task, round: Round) -> Preparation:
    judges = None  # not known: everybody may judge in a task that everybody sees
    if not task.is_visible:
        members = task.members.select_colleagues().select_effective()
        judges = members.filter(Q(role__in=JUDGES) | Q(role__in=OWNERS, is_blind=True)).count()
    contexts = Context.objects.filter(round=round, is_retired=False).count()
    # Only few tasks name a judge model.
    has_judge = task.config.validation.sample is None or find_sample_judge(round) is not None
    return Preparation(contexts, round.round_targets.count(), judges, has_judge)


def _describe_gap(gap: str, task: Task, preparation: Preparation) -> str:
    if gap != "judges":
        return _(GAP_WORDS[gap])
    numbers = {"needed": task.config.validation.votes.needed, "judges": preparation.judge_count}
    if task.config.has_rows_to_judge:  # nobody wrote the rows, so there is no author to leave out
        gap = "row_judges"
    return _(GAP_WORDS[gap]) % numbers


def _build_gap_url(gap: str, round: Round) -> str:
    code = round.task.code
    if gap in CONFIG_GAPS:
        return reverse("own:config", args=[code])
    if gap == "judges":
        return reverse("own:access", args=[code], fragment="members")
    # A target is registered before a round can choose it.
    if gap == "sample_judge" or (
        gap not in ("rows", "contexts") and not round.task.targets.exists()
    ):
        return reverse("own:targets", args=[code])
    page = {"rows": "own:rows", "contexts": "own:contexts"}.get(gap, "own:round-edit")
    return reverse(page, args=[code, round.number])
