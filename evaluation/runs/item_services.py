"""Estimate the properties of a set's items from stored answers and votes. Loads numpy and scipy."""

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from numpy.typing import NDArray

from annotation.models import Example
from evaluation.contract import SetRow
from evaluation.dataset_releases.reading import select_finished_releases
from evaluation.models import (
    EvaluationRun,
    EvaluationSetVersion,
    ItemFit,
    ItemLanguage,
    ItemProperty,
)
from evaluation.runs.item_languages import compare_set_languages
from evaluation.runs.selectors import filter_counting_runs
from evaluation.runs.stored_answers import AnswerReader
from evaluation.scoring.metrics import MetricUnavailable
from evaluation.scoring.ruler.drift import MIN_SIDE_MODELS, measure_drift
from evaluation.scoring.ruler.people import VoteEstimate, estimate_ambiguity, estimate_error
from evaluation.scoring.ruler.response_model import ItemProperties, fit_items
from evaluation.task_shape import get_labels
from evaluation.test_sets.items import MAX_ITEMS, MIN_MODELS
from tasks.config.schema import TaskConfig
from validation.consensus.claims import find_confirming_verdict, find_label_field
from validation.models import Validation, Verdict

logger = logging.getLogger(__name__)
MAX_MODELS = 1000
"""The newest models whose answers are read: minutes at most."""
REFIT_SHARE = 1.1
"""A version is estimated again once a tenth more models have answered."""
BATCH_ROWS = 1000
Votes = Mapping[int, Sequence[tuple[str, str]]]
"""The label and verdict of each vote, by example id."""


def refresh_item_properties(version: EvaluationSetVersion) -> bool:
    """Estimate the items of a version anew if enough models have answered since; return whether.

    Locks the version's ItemFit row while the rows are replaced; two workers that fit at once store
    the same rows one after the other. A set whose files are damaged is skipped.
    """
    if version.size > MAX_ITEMS:
        return False
    model_count = min(MAX_MODELS, find_answered_runs(version).count())
    fit = ItemFit.objects.filter(version=version).first()
    if model_count < MIN_MODELS or (fit and model_count < REFIT_SHARE * fit.model_count):
        return False
    try:
        reader = AnswerReader(version)
    except MetricUnavailable:
        return False
    except (OSError, EOFError, ValueError):
        logger.exception("The set %s cannot be read", version)
        return False
    is_right, runs = _read_right_answers(version, reader)
    # Files of some models may be gone or damaged.
    if len(is_right) < MIN_MODELS:
        return False
    arrivals = [run.submission.queued_at for run in runs]
    day = choose_dividing_day(arrivals, find_release_day(version))
    properties = fit_items(is_right, np.ones_like(is_right))
    items = _build_items(version, reader.rows, is_right, arrivals, day, properties)
    languages = compare_set_languages(
        version, reader.rows, is_right, [run.submission_id for run in runs], properties
    )
    languages.describe(items)
    with transaction.atomic():
        ItemFit.objects.get_or_create(version=version, defaults={"model_count": model_count})
        fit = ItemFit.objects.select_for_update(of=("self",)).get(version=version)
        fit.model_count, fit.fitted_at, fit.divided_at = model_count, timezone.now(), day
        fit.why_no_languages = languages.why_not
        fit.save(update_fields=["model_count", "fitted_at", "divided_at", "why_no_languages"])
        fit.items.all().delete()
        for item in items:
            item.fit = fit
        ItemProperty.objects.bulk_create(items, batch_size=BATCH_ROWS)
        fit.languages.all().delete()
        ItemLanguage.objects.bulk_create(languages.build_rows(fit))
    return True


def find_answered_runs(version: EvaluationSetVersion) -> QuerySet[EvaluationRun]:
    """Return the counting runs of the models that are still there, newest first."""
    runs = version.runs.filter(
        suite=EvaluationRun.Suite.PLAIN, submission__withdrawn_at=None
    ).exclude(predictions="")
    # Logs and measurements are large, and not needed.
    return filter_counting_runs(runs).defer("log", "measurements").order_by("-finished_at", "pk")


def _read_right_answers(
    version: EvaluationSetVersion, reader: AnswerReader
) -> tuple[NDArray[np.bool_], list[EvaluationRun]]:
    """Return which answers are right, and the run of each model with its submission.

    The answers have one row for each model and one column for each item.
    """
    rows, runs = [], []
    for run in find_answered_runs(version).select_related("submission")[:MAX_MODELS]:
        right_answers = reader.read_right_answers(run)
        if right_answers is not None:
            rows.append(right_answers)
            runs.append(run)
    return np.array(rows, dtype=bool).reshape(len(rows), len(reader.rows)), runs


def find_release_day(version: EvaluationSetVersion) -> datetime | None:
    """Return when the version's rows were first released; None if they weren't.

    Rows that are held back have no such day until they are published.
    """
    round = version.evaluation_set.round
    if round is None or version.dataset is None:
        return None
    first_release = select_finished_releases(round).first()
    return first_release.finished_at if first_release else None


def choose_dividing_day(
    arrivals: Sequence[datetime], release_day: datetime | None
) -> datetime | None:
    """Return the day that divides earlier from later models; None if one side has too few.

    It is the day on which the rows were released, if it leaves enough models on both sides.
    Otherwise it is the arrival of the model in the middle.
    """
    middle = sorted(arrivals)[(len(arrivals) - 1) // 2]
    for day in (release_day, middle):
        if day is not None:
            later_count = sum(arrival > day for arrival in arrivals)
            if min(later_count, len(arrivals) - later_count) >= MIN_SIDE_MODELS:
                return day
    return None


def _build_items(
    version: EvaluationSetVersion,
    rows: Sequence[SetRow],
    is_right: NDArray[np.bool_],
    arrivals: Sequence[datetime],
    day: datetime | None,
    properties: ItemProperties,
) -> list[ItemProperty]:
    """Return the properties of all items, not stored. They have no fit yet.

    day: what divides earlier from later models; None without drift.
    """
    difficulties, difficulty_errors = properties.compute_difficulties()
    shifts = shift_errors = np.full(len(rows), np.nan)
    drifted = np.zeros(len(rows), dtype=bool)
    if day is not None:
        is_later = np.array([arrival > day for arrival in arrivals])
        drift = measure_drift(is_right, np.ones_like(is_right), is_later, properties)
        shifts, shift_errors, drifted = drift.shifts, drift.errors, drift.is_flagged
    columns = np.column_stack(
        [
            difficulties,
            difficulty_errors,
            properties.discriminations,
            properties.discrimination_errors,
            shifts,
            shift_errors,
        ]
    )
    # The priors give a number to every item, also where the answers tell nothing.
    columns[~properties.is_stated] = np.nan
    flagged, right_shares = properties.flag_negative(), is_right.mean(axis=0)
    examples = _find_examples(version, rows)
    votes = read_votes(examples.values())
    config = version.evaluation_set.task.config
    labels, outcomes = get_labels(config), _read_outcomes(examples.values())
    items = []
    for position, row in enumerate(rows):
        difficulty, difficulty_error, discrimination, discrimination_error, shift, shift_error = (
            None if np.isnan(number) else float(number) for number in columns[position]
        )
        example_id = examples.get(row.uid)
        right_choices = find_right_choices(config, outcomes.get(example_id or 0, ""), row.gold)
        items.append(
            ItemProperty(
                position=position,
                uid=row.uid,
                example_id=example_id,
                right_share=float(right_shares[position]),
                difficulty=difficulty,
                difficulty_error=difficulty_error,
                discrimination=discrimination,
                discrimination_error=discrimination_error,
                label_may_be_wrong=bool(flagged[position]),
                drift=shift,
                drift_error=shift_error,
                has_drifted=bool(drifted[position]),
                **describe_votes(votes.get(example_id or 0, ()), right_choices, labels),
            )
        )
    return items


def _find_examples(version: EvaluationSetVersion, rows: Sequence[SetRow]) -> dict[str, int]:
    """Return the ids of the examples that people wrote, by the uid that they have in the set."""
    evaluation_set = version.evaluation_set
    round = evaluation_set.round or evaluation_set.held_of
    if round is None and version.dataset:
        round = version.dataset.round
    # Uploaded rows and those of seeds are no examples of a round.
    if round is None:
        return {}
    uids = {row.uid for row in rows}
    # An imported example keeps the uid that it came with.
    pairs = Example.objects.filter(round=round).values_list("pk", "uid", "uuid").iterator()
    return {uid or str(uuid): pk for pk, uid, uuid in pairs if (uid or str(uuid)) in uids}


def _read_outcomes(ids: Iterable[int]) -> dict[int, str]:
    """Return the outcomes of the examples with these ids."""
    outcomes: dict[int, str] = {}
    for batch in _iterate_batches(ids):
        outcomes |= Example.objects.filter(pk__in=batch).values_list("pk", "outcome")
    return outcomes


def read_votes(ids: Iterable[int]) -> Votes:
    """Return the votes of people on the examples with these ids. Votes of programs don't count."""
    votes: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for batch in _iterate_batches(ids):
        rows = Validation.objects.filter(example__in=batch, by_program=False)
        for example_id, label, verdict in rows.values_list("example", "label", "verdict"):
            votes[example_id].append((label, verdict))
    return votes


def _iterate_batches(ids: Iterable[int]) -> Iterator[list[int]]:
    """Yield the ids in lists of at most BATCH_ROWS, because a query has few parameters."""
    remaining_ids = iter(ids)
    while batch := list(islice(remaining_ids, BATCH_ROWS)):
        yield batch


def find_right_choices(config: TaskConfig, outcome: str, answers: Iterable[Any]) -> set[str]:
    """Return the labels and the verdict of votes that agree with an example's right answers.

    Empty if nobody knows yet whether the model was right. answers: the right labels; ignored where
    people vote on verdicts alone. There the verdict that confirms a catch is that the model is
    incorrect.
    """
    choices = set(map(str, answers)) if find_label_field(config) else set()
    if verdict := find_confirming_verdict(config, outcome):
        choices.add(verdict)
    return choices


def describe_votes(
    votes: Sequence[tuple[str, str]], right_choices: Collection[str], labels: Sequence[str] | None
) -> dict[str, Any]:
    """Return the columns of an item that tell of people.

    right_choices: see `find_right_choices`. Empty: how often people are wrong is not known.
    """
    # Who reports an example says nothing about its label.
    choices = [label or verdict for label, verdict in votes if verdict != Verdict.FLAGGED]
    wrong_count = sum(choice not in right_choices for choice in choices)
    counts = Counter(choices)
    # People say which label, or whether the author's is correct.
    answer_count = max(len(labels or ()), len(counts), 2)
    columns: dict[str, Any] = {"votes": len(choices)}
    if right_choices:
        columns |= _name_columns("people_wrong", estimate_error(wrong_count, len(choices)))
    columns |= _name_columns("ambiguity", estimate_ambiguity(list(counts.values()), answer_count))
    return columns


def _name_columns(name: str, estimate: VoteEstimate | None) -> dict[str, float | None]:
    if estimate is None:
        return {}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
