"""Scores as their reader may know them: on sealed sets rounded, and of some results only.

The task's owners and editors know all. How much others may learn is `evaluation.sets.sealing`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from django.db.models import Q, QuerySet

from evaluation.contract import Number, Outcome
from evaluation.models import EvaluationRun, EvaluationSetVersion, Score, Team
from evaluation.scoring.worst import GROUP_GAP, WORST_GROUP, WORST_KIND, WORST_KIND_DROP, worst
from evaluation.sets.sealing import Shown, interval, rounded
from evaluation.sets.submitters import lock_submitter
from tasks.config.schema import CUSTOM_PREFIX
from tasks.models import Task
from tasks.permissions import can_edit

CONSISTENCY = "consistency"
"""Of the numbers of a perturbed run the one that rests on no right answer."""
AXES = {"fairness": WORST_GROUP, "robustness": WORST_KIND}
"""By delta what its column shows: of the other numbers that rest on right answers nothing is."""
Suite = EvaluationRun.Suite


def shown_of(version: EvaluationSetVersion) -> Shown:
    """What is shown of each result on a sealed version of a set, and so of how many."""
    config = version.evaluation_set.task.config
    deltas = config.metrics.deltas
    names = [config.metrics.main, *config.metrics.also, *(AXES[delta] for delta in deltas)]
    # Variants keep right answers that stand in a text, so a perturbed run knows a little of them.
    knowing = deltas if config.component(config.answer_field).type == "span" else ()
    return Shown(version.size, (*names, *knowing), side_runs=len(knowing))


def sealed_versions(task: Task) -> set[int]:
    """The versions of a task's sets whose right answers are secret; one query."""
    versions = EvaluationSetVersion.objects.filter(evaluation_set__task=task)
    found = versions.select_related("evaluation_set", "dataset").defer("dataset__numbers")
    return {version.pk for version in found if version.is_sealed}


def readable(sealed: Iterable[int]) -> Q:
    """Of scores: those that anybody but the task's editors may know. sealed: versions."""
    of_suite = Q(metric=CONSISTENCY) | Q(run__suite=Suite.ROBUSTNESS, metric=WORST_KIND)
    # Of the owners' own metrics only the board shows a version: that which counts in `shown_of`.
    hidden = Q(metric=GROUP_GAP) | Q(metric__startswith=CUSTOM_PREFIX)
    of_all = Q(slice="", kind="") & (of_suite | Q(run__suite=Suite.PLAIN) & ~hidden)
    return ~Q(run__version__in=sealed) | (of_all & Q(run__is_shown=True))


def as_shown(score: Score) -> Score:
    """A score on a sealed set as it is shown; `readable` says which are. It is not to be saved."""
    if score.value is not None:
        size = min(score.run.version.size, score.n)
        score.value, score.low, score.high = shown_number(score.metric, score.value, size)
    score.is_rounded = True
    return score


def shown_number(metric: str, value: float | None, size: int) -> tuple[float | None, ...]:
    """A score's value and interval as they are shown of a sealed set.

    size: of how many examples it is; no more of these, and so no more steps, than the set has.
    Where there is no value, and of what is not shown, there is nothing.
    """
    if value is None or metric in (GROUP_GAP, WORST_KIND_DROP):
        return None, None, None
    shown = rounded(value, size)
    return (shown, *interval(shown, size, metric))


def with_own_size(scores: Iterable[Score], parts: Iterable[Score]) -> Iterator[Score]:
    """Scores, those of a worst part with the number of that part's examples; not to be saved.

    Stored is the number of the smallest part, which says nothing of a model: by it scores on sealed
    sets are rounded, so they keep it. parts: the runs' scores by kind and by slice.
    """
    by_run: dict[Any, list[Score]] = defaultdict(list)
    for part in parts:
        by_run[part.run_id].append(part)
    for score in scores:
        if score.metric in AXES.values() and (found := _worst_part(score, by_run[score.run_id])):
            score.n = found.n
        yield score


def _worst_part(score: Score, parts: Iterable[Score]) -> Number | None:
    """The kind, or the group, of which the score is; None where it is not known."""
    from evaluation.scoring.groups import groups_of, parts_of, share_of  # loads numpy

    config = score.run.version.evaluation_set.task.config
    numbers = [Number(part.metric, part.value, part.low, part.high, part.n, part.slice, part.kind)
               for part in parts]  # fmt: skip
    if score.metric == WORST_KIND:
        return worst([one for one in numbers if one.kind and one.metric.endswith("_after")])
    fields = groups_of(config).fields
    return worst(parts_of(numbers, fields, share_of(config.metrics.computed)))


def parts_of_runs(runs: Collection[Any], sealed: Collection[int]) -> QuerySet[Score]:
    """The scores by kind and by slice of runs, by id, on sets that are not sealed."""
    parts = Score.objects.filter(run__in=runs).exclude(slice="", kind="")
    return parts.exclude(run__version__in=sealed)


def scores_of(runs: Iterable[EvaluationRun], *, exact: bool) -> Iterator[Score]:
    """The scores of runs that come with their versions; exact: for the task's editors."""
    by_id = {run.pk: run for run in runs}
    sealed = {run.version_id for run in by_id.values() if run.version.is_sealed and not exact}
    found = [*Score.objects.filter(readable(sealed), run__in=by_id).order_by("pk")]
    for score in found:
        score.run = by_id[score.run_id]
    for score in with_own_size(found, [one for one in found if one.kind or one.slice]):
        yield as_shown(score) if score.run.version_id in sealed else score


def may_show(run: EvaluationRun) -> bool:
    """Whether the result of a run that ends now is shown. Locks its person, then the team.

    On sealed sets as many are shown to a person as `Shown.results` says, under all their accounts,
    and as many of all that was submitted for a team; what was withdrawn counts. The platform's own
    models are always shown, and those of the task's editors unless they are for a team that has had
    its number.
    """
    submission, version = run.submission, run.version
    if not version.is_sealed or submission.kind == submission.Kind.TARGET:
        return True
    owner, person = submission.owner, lock_submitter(submission)
    if owner is None or person is None:
        return False
    counted = [] if can_edit(owner, submission.task) else [Q(submission__person=person)]
    if submission.team_id:
        Team.objects.select_for_update(of=("self",), no_key=True).get(pk=submission.team_id)
        counted.append(Q(submission__team=submission.team_id))
    if not counted:
        return True
    good = version.runs.filter(suite=Suite.PLAIN, outcome=Outcome.OK, is_shown=True)
    if run.suite != Suite.PLAIN:
        return good.filter(submission=submission).exists()
    most = shown_of(version).results
    return all(good.filter(whose).count() < most for whose in counted)
