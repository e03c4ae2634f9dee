"""Show scores on sealed sets without giving their right answers away.

docs/evaluation.md, "Sealed sets", states the rule for readers. If a set's right answers are
public, everybody sees every score exactly. On a sealed set, the task's editors do, too. Everybody
else sees

1. only results that were chosen to be shown, the first ones of each person (`decide_if_shown`),
2. of these only the numbers that `Disclosure` counts as bits (`build_readable_condition`): totals
   over all examples, never a slice or a kind of perturbation,
3. and these numbers only rounded to steps (`round_stored_score`).

`evaluation.test_sets.sealing` computes how wide a step is and how many results a person sees.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from django.db.models import Q, QuerySet

from core.accounts.models import CountedPerson, User
from evaluation.contract import Number, Outcome
from evaluation.dataset_releases.anchors import count_expected_numbers
from evaluation.kinds import TARGET_KIND
from evaluation.models import (
    EvaluationRun,
    EvaluationSet,
    EvaluationSetVersion,
    Score,
    Submission,
    Team,
)
from evaluation.scoring.worst import (
    CONSISTENCY,
    GROUP_GAP,
    WORST_GROUP,
    WORST_KIND,
    WORST_KIND_DROP,
    find_worst,
)
from evaluation.test_sets.sealing import Disclosure, compute_interval, round_to_step
from evaluation.test_sets.submitters import lock_submitter
from tasks.config.schema import CUSTOM_PREFIX
from tasks.models import Task
from tasks.permissions import can_edit

AXIS_METRICS = {"fairness": WORST_GROUP, "robustness": WORST_KIND}
"""The number in the board's column of each delta.

Other numbers of a perturbed run that need right answers are shown only to editors.
"""
Suite = EvaluationRun.Suite


def describe_disclosure(version: EvaluationSetVersion) -> Disclosure:
    """Return what each shown result on a sealed version discloses.

    This limits how many results are shown.
    """
    config = version.evaluation_set.task.config
    deltas = config.metrics.deltas
    metrics = (
        [config.metrics.main]
        + list(config.metrics.also)
        + [AXIS_METRICS[delta] for delta in deltas]
    )
    has_trial = version.evaluation_set.source == EvaluationSet.Source.HELD
    # What the ruler expects of a model follows from its answers to the anchors: the mean over all
    # linked sets, and a number for each. A number has fewer steps than a score on the whole set.
    if expected_count := count_expected_numbers(version):
        metrics += ["accuracy"] * expected_count
    if config.get_component(config.answer_field).type != "span":
        return Disclosure(version.size, tuple(metrics), has_trial=has_trial)
    # Perturbations keep the answers that are marked in a text. The words that stay, and so how
    # consistently a model answers, reveal a little about the answers: each suite costs bits.
    return Disclosure(version.size, (*metrics, *deltas), side_runs=len(deltas), has_trial=has_trial)


def find_sealed_versions(task: Task) -> set[int]:
    """Return the ids of the task's set versions whose right answers are secret. One query."""
    versions = EvaluationSetVersion.objects.filter(evaluation_set__task=task)
    # The numbers of a release may take megabytes, and `is_sealed` does not read them.
    versions = versions.select_related("evaluation_set", "dataset").defer("dataset__numbers")
    return {version.pk for version in versions if version.is_sealed}


def build_readable_condition(sealed_ids: Iterable[int]) -> Q:
    """Return the condition for scores that people who cannot edit the task may read.

    sealed_ids: ids of the sealed versions. Scores on all other versions are readable.
    """
    is_on_open_set = ~Q(run__version__in=sealed_ids)
    is_of_shown_result = Q(run__is_shown=True)
    is_total = Q(slice="", kind="")

    # Of a plain run: the task's metrics and fairness. The gap between groups would reveal more than
    # the worst group, which is the number that `describe_disclosure` counts. Of the owners' own
    # metrics only the board shows a version: the one that `describe_disclosure` counts.
    is_of_plain_run = Q(run__suite=Suite.PLAIN)
    tells_more_than_counted = Q(metric=GROUP_GAP) | Q(metric__startswith=CUSTOM_PREFIX)
    is_plain_number = is_of_plain_run & ~tells_more_than_counted

    # Of a perturbed run: the robustness column, and metrics that need no right answer.
    is_robustness = Q(run__suite=Suite.ROBUSTNESS, metric=WORST_KIND)
    is_suite_number = Q(metric=CONSISTENCY) | is_robustness

    is_counted_number = is_total & (is_suite_number | is_plain_number)
    return is_on_open_set | (is_counted_number & is_of_shown_result)


def round_stored_score(score: Score) -> Score:
    """Round a score on a sealed set in place and return it. Do not save it afterwards.

    `build_readable_condition` decides which scores may be shown at all.
    """
    if score.value is not None:
        size = min(score.run.version.size, score.n)
        score.value, score.low, score.high = round_number(score.metric, score.value, size)
    score.is_rounded = True
    return score


def round_number(metric: str, value: float | None, size: int) -> tuple[float | None, ...]:
    """Return a number on a sealed set as non-editors see it: value, low end, high end.

    All three are None if there is no value, and for numbers that are never shown.

    Parameters
    ----------
    metric
        The number's name.
    value
        The exact value.
    size
        The number of examples on which it was computed, at most the size of the set. Fewer
        examples mean coarser steps.
    """
    if value is None or metric in (GROUP_GAP, WORST_KIND_DROP):
        return None, None, None
    rounded_value = round_to_step(value, size)
    # The interval depends only on the rounded value, so that it does not reveal the exact one.
    low, high = compute_interval(rounded_value, size, metric)
    return rounded_value, low, high


def set_part_sizes(scores: Iterable[Score], part_scores: Iterable[Score]) -> Iterator[Score]:
    """Yield the scores; the `n` of a worst part's score becomes that part's number of examples.

    The stored `n` is that of the smallest part, which says nothing about the model. On sealed sets,
    pass no part scores, because rounding uses the stored `n`. Do not save the scores afterwards.
    part_scores: the scores of the same runs by kind and by slice.
    """
    parts_by_run: dict[Any, list[Score]] = defaultdict(list)
    for part_score in part_scores:
        parts_by_run[part_score.run_id].append(part_score)
    for score in scores:
        if score.metric in AXIS_METRICS.values():
            worst_part = _find_worst_part(score, parts_by_run[score.run_id])
            if worst_part is not None:
                score.n = worst_part.n
        yield score


def _find_worst_part(score: Score, part_scores: Iterable[Score]) -> Number | None:
    """Return the kind or group to which a worst-part score refers; None if unknown."""
    from evaluation.scoring.groups import (
        choose_group_metric,
        read_groups,
        select_group_numbers,
    )  # loads numpy

    config = score.run.version.evaluation_set.task.config
    numbers = [
        Number(
            part_score.metric,
            part_score.value,
            part_score.low,
            part_score.high,
            part_score.n,
            part_score.slice,
            part_score.kind,
        )
        for part_score in part_scores
    ]
    if score.metric == WORST_KIND:
        return find_worst(
            [number for number in numbers if number.kind and number.metric.endswith("_after")]
        )
    fields = read_groups(config).fields
    return find_worst(
        select_group_numbers(numbers, fields, choose_group_metric(config.metrics.computed_names))
    )


def find_scores_by_part(run_ids: Collection[Any], sealed_ids: Collection[int]) -> QuerySet[Score]:
    """Return the runs' scores by kind and by slice, except those on sealed versions.

    run_ids, sealed_ids: ids of runs and of versions.
    """
    part_scores = Score.objects.filter(run__in=run_ids).exclude(slice="", kind="")
    return part_scores.exclude(run__version__in=sealed_ids)


def list_scores(runs: Iterable[EvaluationRun], *, is_exact: bool) -> Iterator[Score]:
    """Yield the scores of runs as the reader may see them. One query.

    runs: with their versions loaded. is_exact: whether the reader edits the task and sees
    everything.
    """
    run_by_id = {run.pk: run for run in runs}
    sealed_ids = set()
    if not is_exact:
        sealed_ids = {run.version_id for run in run_by_id.values() if run.version.is_sealed}
    scores = list(
        Score.objects.filter(build_readable_condition(sealed_ids), run__in=run_by_id).order_by("pk")
    )
    for score in scores:
        score.run = run_by_id[score.run_id]
    by_part = [score for score in scores if score.kind or score.slice]
    for score in set_part_sizes(scores, by_part):
        if score.run.version_id in sealed_ids:
            yield round_stored_score(score)
        else:
            yield score


def decide_if_shown(run: EvaluationRun) -> bool:
    """Return whether to show the result of a run that is now ending.

    Call this in the transaction that stores the result. Locks the counted person, then the team, so
    that simultaneous results are counted one after another.

    1. On sets with public answers, and for the platform's own models, all results are shown.
    2. A result that counts for nobody is not shown, because nothing would limit their number.
    3. `Disclosure.max_results` limits the results of a person across all their accounts. It also
       limits those of all models of a team, including withdrawn ones. The task's editors know the
       answers anyway, so their own results are not limited. Their results for a team are.
    4. A perturbed run is shown if its model's plain result is shown.
    """
    submission, version = run.submission, run.version
    if not version.is_sealed or submission.kind == TARGET_KIND:
        return True
    owner, person = submission.owner, lock_submitter(submission)
    if owner is None or person is None:
        return False
    bounded_groups = _lock_bounded_groups(submission, owner, person)
    if not bounded_groups:
        return True
    results = version.runs.filter(suite=Suite.PLAIN, outcome=Outcome.OK, is_shown=True)
    if run.suite != Suite.PLAIN:
        return results.filter(submission=submission).exists()
    max_results = describe_disclosure(version).max_results
    return all(results.filter(group).count() < max_results for group in bounded_groups)


def _lock_bounded_groups(submission: Submission, owner: User, person: CountedPerson) -> list[Q]:
    """Return filters of the runs that share a limit with this submission. Locks its team."""
    groups = []
    if not can_edit(owner, submission.task):
        groups.append(Q(submission__person=person))
    if submission.team_id:
        # `no_key`: rows that point at the team may be inserted by others in the meantime.
        Team.objects.select_for_update(of=("self",), no_key=True).get(pk=submission.team_id)
        groups.append(Q(submission__team=submission.team_id))
    return groups
