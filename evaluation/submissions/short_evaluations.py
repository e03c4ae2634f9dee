"""Short evaluations as readers may see them, with the models that can't be told apart from theirs.

On a sealed set only the task's editors see them: an exact estimate would reveal more about the
right answers than the rounded scores that others see.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q, QuerySet

from evaluation.kinds import KINDS
from evaluation.models import EvaluationRun, EvaluationSet, Score, ShortEvaluation, Submission
from evaluation.runs.selectors import filter_counting_runs
from evaluation.scoring.shorter.separating import find_inseparable
from evaluation.submissions.selectors import build_public_condition
from evaluation.submissions.visibility import Viewer, find_shown_name

MAX_SHOWN = 20
"""The newest short evaluations on a model's page; the API has all of them."""
MAX_NAMES = 5
"""Models named as close on a page; the others are counted."""


@dataclass(frozen=True)
class CloseModel:
    """A published model whose score on the whole set lies in a short evaluation's interval."""

    pk: UUID
    name: str


@dataclass(frozen=True)
class ShownEvaluation:
    """A short evaluation with what its reader may see.

    close_models: those that it can't tell apart from the evaluated model, the nearest first.
    spent, most_cost, full_cost: in the currency of the model's prices; None for outsiders. The
    full cost is what all examples would cost if they cost what the asked ones did.
    """

    evaluation: ShortEvaluation
    close_models: Sequence[CloseModel]
    spent: float | None
    most_cost: float | None
    full_cost: float | None

    @property
    def title(self) -> str:
        """The set and its version."""
        version = self.evaluation.version
        return f"{version.evaluation_set.name} v{version.version}"

    @property
    def named_models(self) -> Sequence[CloseModel]:
        """The nearest of the close models, for a page."""
        return self.close_models[:MAX_NAMES]

    @property
    def unnamed_count(self) -> int:
        """How many further close models a page doesn't name."""
        return len(self.close_models) - len(self.named_models)


def select_visible_evaluations(submission: Submission, viewer: Viewer) -> QuerySet[ShortEvaluation]:
    """Return the short evaluations that a reader may know of, newest first.

    None once the model is withdrawn. Those on sealed and on hidden sets are for the task's editors.
    """
    if submission.withdrawn_at:
        return ShortEvaluation.objects.none()
    evaluations = submission.short_evaluations.select_related(
        "version__evaluation_set", "version__dataset"
    ).defer("version__dataset__numbers")
    if viewer.is_task_owner:
        return evaluations
    evaluations = evaluations.exclude(version__evaluation_set__access=EvaluationSet.Access.HIDDEN)
    # The same rule as `EvaluationSetVersion.is_sealed`, which the database can't call.
    has_public_test = Q(version__dataset__isnull=False) & (
        Q(version__dataset__options__private_test__isnull=True)
        | Q(version__dataset__options__private_test=False)
    )
    return evaluations.filter(Q(version__evaluation_set__answers_public=True) | has_public_test)


def find_shown_evaluations(submission: Submission, viewer: Viewer) -> list[ShownEvaluation]:
    """Return a model's newest short evaluations for its page; two queries, or none."""
    # Most models are of kinds that have none.
    if not KINDS[submission.kind].costs_per_call:
        return []
    return describe_evaluations(select_visible_evaluations(submission, viewer)[:MAX_SHOWN], viewer)


def describe_evaluations(
    evaluations: Iterable[ShortEvaluation], viewer: Viewer
) -> list[ShownEvaluation]:
    """Return short evaluations of one model with what their reader may see; one query.

    evaluations: those that the reader may know of.
    """
    evaluations = list(evaluations)
    scores_by_version = _find_scores(evaluations)
    shown = []
    for evaluation in evaluations:
        spent = most_cost = full_cost = None
        if viewer.is_inside and evaluation.submission.chat.get("most_cost"):
            spent, most_cost = evaluation.spent, evaluation.most_cost
            if evaluation.asked:
                full_cost = evaluation.version.size * evaluation.spent / evaluation.asked
        close_models = _find_close_models(evaluation, scores_by_version[evaluation.version_id])
        shown.append(ShownEvaluation(evaluation, close_models, spent, most_cost, full_cost))
    return shown


def _find_scores(evaluations: Sequence[ShortEvaluation]) -> dict[int, list[Score]]:
    """Return the main scores of published models on all examples, by version id; one query."""
    scores: dict[int, list[Score]] = defaultdict(list)
    ended = [evaluation for evaluation in evaluations if evaluation.value is not None]
    if not ended:
        return scores
    submission = ended[0].submission
    in_intervals = Q()
    for evaluation in ended:
        # Boards have thousands of models, so the database leaves out those that are far away.
        in_intervals |= Q(
            run__version=evaluation.version_id,
            value__gte=evaluation.low,
            value__lte=evaluation.high,
        )
    runs = filter_counting_runs(EvaluationRun.objects.filter(suite=EvaluationRun.Suite.PLAIN))
    public_models = Submission.objects.filter(build_public_condition(), task=submission.task_id)
    main_scores = Score.objects.filter(
        in_intervals,
        metric=submission.task.config.metrics.main,
        slice="",
        kind="",
        run__in=runs.filter(submission__in=public_models.exclude(pk=submission.pk)),
    )
    main_scores = main_scores.select_related("run__submission")
    # Logs and measurements are large, and names don't need them.
    for score in main_scores.defer("run__log", "run__measurements", "run__submission__log"):
        scores[score.run.version_id].append(score)
    return scores


def _find_close_models(evaluation: ShortEvaluation, scores: Iterable[Score]) -> list[CloseModel]:
    if evaluation.value is None or evaluation.low is None or evaluation.high is None:
        return []
    interval = (evaluation.low, evaluation.value, evaluation.high)
    score_by_model = {score.run.submission: score.value for score in scores}
    # An anonymous model stays anonymous here, also for people who know it.
    outsider = Viewer(is_owner=False, is_task_owner=False)
    return [
        CloseModel(model.pk, find_shown_name(model, outsider))
        for model in find_inseparable(interval, score_by_model)
    ]
