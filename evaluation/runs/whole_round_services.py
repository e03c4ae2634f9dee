"""Store what models would score on whole rounds of which people judged a sample. Loads numpy."""

import logging
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import F, QuerySet
from django.utils import timezone

from annotation.models import Example
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, EvaluationSet, EvaluationSetVersion, WholeRoundScore
from evaluation.runs.selectors import filter_counting_runs
from evaluation.runs.stored_answers import AnswerReader
from evaluation.scoring.metrics import MetricUnavailable
from evaluation.scoring.whole_rounds import RoundTry, estimate_whole_round
from evaluation.test_sets.items import MAX_ITEMS
from validation.decisions.counted import build_measure_condition
from validation.statistics.samples import find_whether_asked

logger = logging.getLogger(__name__)
RETRY_TIME = timedelta(days=7)
"""How long an estimate that is missing is tried again. Damaged answers never give one."""


def store_whole_round_score(run: EvaluationRun) -> bool:
    """Store the estimate for the whole round of a finished run; return whether.

    Does nothing unless people judged a sample of the round whose confirmed examples the set has.
    Takes no lock: a run has one estimate, which never changes. Sets whose files are damaged are
    skipped.
    """
    version = run.version
    is_plain = run.suite == EvaluationRun.Suite.PLAIN
    if not (is_plain and version.is_whole_round) or version.size > MAX_ITEMS:
        return False
    # The end of a run is stored by an update, so the object in memory lacks its answers.
    run.refresh_from_db(fields=["outcome", "predictions"])
    if run.outcome != Outcome.OK or not run.predictions:
        return False
    try:
        reader = AnswerReader(version)
    except MetricUnavailable:
        return False
    except (OSError, EOFError, ValueError):
        logger.exception("The set %s cannot be read", version)
        return False
    is_right = reader.read_right_answers(run)
    if is_right is None or not len(is_right):
        return False
    right_by_uid = {row.uid: bool(right) for row, right in zip(reader.rows, is_right, strict=True)}
    tries = _read_tries(version, right_by_uid)
    estimate = estimate_whole_round(tries)
    numbers = {}
    if estimate is not None:
        numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    to_judge = [one.is_asked for one in tries if one.is_to_judge]
    # Two workers may end the same run, and store the same.
    WholeRoundScore.objects.get_or_create(
        run=run,
        defaults={
            **numbers,
            "set_share": float(is_right.mean()),
            "judged": sum(to_judge),
            "left_out": len(to_judge) - sum(to_judge),
        },
    )
    return True


def find_runs_without_estimate() -> QuerySet[EvaluationRun]:
    """Return the counting runs of the last RETRY_TIME that lack an estimate, oldest first."""
    runs = EvaluationRun.objects.filter(
        suite=EvaluationRun.Suite.PLAIN,
        finished_at__gte=timezone.now() - RETRY_TIME,
        whole_round_score__isnull=True,
        # As `EvaluationSetVersion.is_whole_round` says.
        version__evaluation_set__source=EvaluationSet.Source.ROUND,
        version__dataset__isnull=True,
        version__left_out__gt=0,
        version__size__lte=MAX_ITEMS,
    )
    return filter_counting_runs(runs).exclude(predictions="").order_by("finished_at", "pk")


def _read_tries(version: EvaluationSetVersion, right_by_uid: dict[str, bool]) -> Sequence[RoundTry]:
    """Return all examples that people wrote in the round, with the answers of one model.

    right_by_uid: whether the model was right, by the uid of each example of the set. One query.
    """
    examples = Example.objects.filter(
        round=version.evaluation_set.round, retracted_at__isnull=True, by_program=False
    ).order_by("pk")
    rows = examples.annotate(
        queued=F("queue_item__pk"), judged=build_measure_condition("judged")
    ).values_list(
        *("uid", "uuid", "annotator", "outcome", "queued", "judged"),
        *("vote_draw__judge_score", "vote_draw__chance", "vote_draw__is_drawn"),
    )
    tries = []
    for uid, uuid, author, outcome, queued, judged, score, chance, is_drawn in rows.iterator(
        chunk_size=2000
    ):
        asked = find_whether_asked(
            result=outcome,
            chance=chance,
            is_drawn=is_drawn,
            is_queued=queued is not None,
            is_judged=judged,
        )
        # An imported example keeps the uid that it came with.
        is_right = right_by_uid.get(uid or str(uuid))
        tries.append(
            RoundTry(author, score, asked.chance, asked.is_asked, asked.is_to_judge, is_right)
        )
    return tries
