"""Store the trials of leaks: models on released and held-back rows of a round. Loads numpy."""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from django.db.models import Exists, OuterRef, Q, QuerySet
from numpy.typing import NDArray

from annotation.models import Example
from evaluation.dataset_releases.reading import select_finished_releases
from evaluation.models import EvaluationRun, EvaluationSet, EvaluationSetVersion, LeakTrial
from evaluation.runs.item_services import find_answered_runs
from evaluation.runs.selectors import is_remote
from evaluation.runs.stored_answers import AnswerReader
from evaluation.scoring.leaks import TrialHalf, estimate_leak
from evaluation.scoring.metrics import MetricUnavailable
from evaluation.test_sets.items import MAX_ITEMS
from tasks.models import Round

logger = logging.getLogger(__name__)
Floats = NDArray[np.float64]
MAX_TRIALS = 20
"""The most trials that are stored after one run; the next run continues."""
MAX_EARLIER_MODELS = 50
"""The newest models from before the release whose answers are read: half a minute at most."""


@dataclass(frozen=True)
class _Pair:
    """The halves of a round's release, and since when each of them has been public.

    published_at: of what was held back; None while it is secret.
    """

    round: Round
    released: EvaluationSetVersion
    held: EvaluationSetVersion
    released_at: datetime
    published_at: datetime | None


@dataclass(frozen=True)
class _HalfReader:
    """The rows of one half that a known author wrote. places: their positions in the set."""

    reader: AnswerReader
    places: NDArray[np.intp]
    authors: list[int]

    def read_right_answers(self, run: EvaluationRun) -> Floats | None:
        """Return 1 for right answers, else 0; None if the file is gone or damaged."""
        marks = self.reader.read_right_answers(run)
        return None if marks is None else marks[self.places].astype(float)


def store_leak_trials(run: EvaluationRun) -> int:
    """Store the trials of the round of a finished run that are missing; return how many.

    A killed worker leaves none half done, and the next run of the round does what it left. Takes no
    lock: trials are unique and never change. Sets whose files are damaged are skipped.
    """
    pair = _find_pair(run.version.evaluation_set)
    if pair is None:
        return 0
    run_pairs = _find_missing_pairs(pair)
    if not run_pairs:
        return 0
    try:
        authors = _read_authors(pair.round)
        halves = tuple(_open_half(version, authors) for version in (pair.released, pair.held))
    except MetricUnavailable:
        return 0
    except (OSError, EOFError, ValueError):
        logger.exception("The halves of %s cannot be read", pair.round)
        return 0
    earlier_count, expected = _compute_expected(pair, halves)
    trials = []
    for released_run, held_run in run_pairs:
        sides = []
        for half, half_run, chances in zip(halves, (released_run, held_run), expected, strict=True):
            is_right = half.read_right_answers(half_run)
            if is_right is not None:
                sides.append(TrialHalf(is_right, chances, half.authors))
        # Its files are gone, which no later try can change.
        if len(sides) < 2:
            continue
        estimate = estimate_leak(*sides)
        released, held = sides
        trials.append(
            LeakTrial(
                round=pair.round,
                submission_id=released_run.submission_id,
                released_run=released_run,
                held_run=held_run,
                released_n=len(released.authors),
                held_n=len(held.authors),
                released_authors=len(set(released.authors)),
                held_authors=len(set(held.authors)),
                earlier_models=earlier_count,
                **(asdict(estimate) if estimate else {}),
            )
        )
    # Another worker may have stored the same trial: pairs are unique.
    LeakTrial.objects.bulk_create(trials, ignore_conflicts=True)
    return len(trials)


def _find_pair(evaluation_set: EvaluationSet) -> _Pair | None:
    """Return the newest halves of a set's round; None if nothing was held back from its release."""
    round = evaluation_set.round or evaluation_set.held_of
    if round is None:
        return None
    versions = EvaluationSetVersion.objects.order_by("-version")
    held = versions.filter(evaluation_set__held_of=round).first()
    released = versions.filter(evaluation_set__round=round, dataset__isnull=False).first()
    if held is None or released is None or max(held.size, released.size) > MAX_ITEMS:
        return None
    # The first release made the rows public; later ones only leave out what was withdrawn.
    releases = list(select_finished_releases(round))
    if not releases or releases[0].finished_at is None:
        return None
    published = [release for release in releases if "held" in release.numbers.get("rows", ())]
    published_at = published[0].finished_at if published else None
    return _Pair(round, released, held, releases[0].finished_at, published_at)


def _select_runs(version: EvaluationSetVersion) -> QuerySet[EvaluationRun]:
    """Return the counting plain runs of models that were not in the round's loop."""
    return find_answered_runs(version).filter(in_the_loop=False)


def _find_missing_pairs(pair: _Pair) -> list[tuple[EvaluationRun, EvaluationRun]]:
    """Return the runs on both halves of later models without a trial, the newest first."""
    has_trial = LeakTrial.objects.filter(
        held_run=OuterRef("pk"), released_run__version=pair.released
    )
    held_runs = _select_runs(pair.held).filter(
        ~Exists(has_trial), submission__queued_at__gt=pair.released_at
    )
    # Later models may have learned both halves, so they would always seem honest.
    if pair.published_at is not None:
        held_runs = held_runs.filter(submission__queued_at__lt=pair.published_at)
    released_runs = {
        run.submission_id: run
        for run in _select_runs(pair.released).filter(
            submission__in=held_runs.order_by().values("submission")
        )
    }
    run_pairs = []
    for held_run in held_runs:
        released_run = released_runs.get(held_run.submission_id)
        if released_run is not None:
            run_pairs.append((released_run, held_run))
    return run_pairs[:MAX_TRIALS]


def _read_authors(round: Round) -> dict[str, int]:
    """Return the author of each example of a round, by the uid that it has in sets."""
    rows = Example.objects.filter(round=round).values_list("uid", "uuid", "annotator", "pk")
    # Pseudonyms change when a person leaves, but the row of the annotator stays.
    authors = {}
    for uid, uuid, annotator_id, pk in rows.iterator():
        # Rows of unknown authors were drawn one by one, so each is a cluster of its own.
        authors[uid or str(uuid)] = annotator_id if annotator_id is not None else -pk
    return authors


def _open_half(version: EvaluationSetVersion, authors: Mapping[str, int]) -> _HalfReader:
    """Open a half. Raises what `AnswerReader` raises."""
    reader = AnswerReader(version)
    # Questions that the task adds to every set were not drawn.
    places = [place for place, row in enumerate(reader.rows) if row.uid in authors]
    row_authors = [authors[reader.rows[place].uid] for place in places]
    return _HalfReader(reader, np.array(places, dtype=np.intp), row_authors)


def _compute_expected(pair: _Pair, halves: tuple[_HalfReader, ...]) -> tuple[int, list[Floats]]:
    """Return how many earlier models answered both halves, and their share of right answers.

    Models behind another server's address may have changed since, so they don't count as earlier.
    """
    # Files of a submission never change, so an earlier one can't have seen the rows.
    earlier = Q(submission__queued_at__lt=pair.released_at)
    runs_by_half: list[dict[UUID, EvaluationRun]] = []
    for version in (pair.released, pair.held):
        runs = _select_runs(version).filter(earlier).select_related("submission__target")
        runs_by_half.append(
            {run.submission_id: run for run in runs if not is_remote(run.submission)}
        )
    released_runs, held_runs = runs_by_half
    sums = [np.zeros(len(half.authors)) for half in halves]
    count = 0
    for submission_id in [key for key in held_runs if key in released_runs][:MAX_EARLIER_MODELS]:
        model_runs = (released_runs[submission_id], held_runs[submission_id])
        marks = []
        for half, run in zip(halves, model_runs, strict=True):
            is_right = half.read_right_answers(run)
            if is_right is not None:
                marks.append(is_right)
        # A model must count on both halves, or they would be compared with different models.
        if len(marks) == 2:
            count += 1
            sums = [total + mark for total, mark in zip(sums, marks, strict=True)]
    return count, [total / max(1, count) for total in sums]
