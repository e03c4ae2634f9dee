"""How worn out each round is: people's lead, examples that still tell models apart, and since when.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import Count, F, FloatField, Q, Sum
from django.db.models.functions import Cast

from evaluation.models import ItemProperty, Submission
from evaluation.test_sets.sealing import count_steps
from leaderboard.board.cells import Cell
from leaderboard.board.matrix import NORMAL_QUANTILE, Matrix
from leaderboard.rounds.matrix import EMPTY_CELL
from leaderboard.rounds.training_dates import find_share_metric
from leaderboard.rounds.worn_rules import DatedScore, WornDay, find_worn_day
from tasks.models import Round
from validation.rates.rates import compute_clustered_ratio, compute_wilson_interval

MIN_ITEMS = 30
"""Examples with enough votes that a lead of people needs."""
MIN_AUTHORS = 5
"""Authors of these examples, which its interval needs."""
EASY_SHARE, HARD_SHARE = 0.9, 0.1
"""An example that more, or fewer, models than this get right hardly tells them apart."""


@dataclass(frozen=True)
class WornMeter:
    """How worn out a round is. Numbers are in points or percent, empty with too little data.

    margin: people's accuracy − models' − ambiguity. margin_n: the examples behind it. telling: the
    share of examples that still tell models apart. item_n: the examples behind that.
    """

    round: int
    margin: Cell
    margin_n: int
    telling: Cell
    item_n: int
    worn: WornDay

    @property
    def csv_values(self) -> dict[str, Sequence[Any]]:
        """The value, low and high end of each number, by its name in the file of rounds."""
        return {
            "people_minus_models_minus_ambiguity": self.margin,
            "examples_that_tell": self.telling,
            "worn_out_since": (self.worn.day, self.worn.low, self.worn.high),
        }

    def build_json(self) -> dict[str, Any]:
        """Return the meter as JSON values."""
        worn = self.worn
        dates = {"day": worn.day, "low": worn.low, "high": worn.high}
        return {
            "round": self.round,
            "margin": self.margin._asdict(),
            "margin_n": self.margin_n,
            "telling": self.telling._asdict(),
            "item_n": self.item_n,
            "worn_out": {
                "state": worn.state.value,
                **{name: day and day.isoformat() for name, day in dates.items()},
                "models": worn.models,
            },
        }


def build_worn_meters(matrix: Matrix, rounds: Sequence[Round]) -> list[WornMeter]:
    """Return the meter of each round with a set, by number. Two queries."""
    closing_days = {round.number: round.closed_at for round in rounds}
    # When a model's run ended says nothing: old models are run on new sets, too.
    arrivals = _read_arrivals(matrix)
    sets = {board_set.version_id: board_set for board_set in matrix.sets if board_set.round}
    sums_by_version = _read_item_sums(list(sets))
    meters = []
    for set_index, board_set in enumerate(matrix.sets):
        if board_set.round is None:
            continue
        closed_at = closing_days.get(board_set.round)
        first_day = closed_at.date() if closed_at else board_set.date
        scores = _list_scores(matrix, set_index, first_day, arrivals)
        # On a sealed set the matrix has rounded scores only.
        step = 1 / count_steps(board_set.size) if board_set.is_sealed else 0.0
        rows = sums_by_version.get(board_set.version_id, [])
        item_n = sum(row["items"] for row in rows)
        meters.append(
            WornMeter(
                round=board_set.round,
                margin=_compute_margin(rows),
                margin_n=sum(row["judged"] for row in rows),
                telling=_compute_telling(sum(row["telling"] for row in rows), item_n),
                item_n=item_n,
                worn=find_worn_day(scores, step),
            )
        )
    return sorted(meters, key=lambda meter: meter.round)


def _read_arrivals(matrix: Matrix) -> dict[UUID, date]:
    """Return the day on which each model was submitted."""
    submissions = Submission.objects.filter(pk__in=[model.id for model in matrix.models])
    return {pk: moment.date() for pk, moment in submissions.values_list("pk", "queued_at")}


def _list_scores(
    matrix: Matrix, set_index: int, first_day: date, arrivals: Mapping[UUID, date]
) -> list[DatedScore]:
    """Return the shares of right answers on a set, of models that weren't in its round's loop."""
    metric = find_share_metric(matrix)
    if metric is None:
        return []
    numbers, column = matrix.numbers, matrix.metrics.index(metric)
    scores = []
    for model_index, model in enumerate(matrix.models):
        value = float(numbers.values[model_index, set_index, column])
        if (
            np.isnan(value)
            or numbers.in_the_loop[model_index, set_index]
            or model.id not in arrivals
        ):
            continue
        # Old runs stored no number of examples.
        n = int(numbers.n[model_index, set_index, column]) or matrix.sets[set_index].size
        # Models from before the round could all be compared on it on the same day.
        scores.append(DatedScore(max(first_day, arrivals[model.id]), value / 100, n))
    return scores


def _read_item_sums(version_ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """Return sums over items by version, one row for each author. One query.

    The sums are of many models and examples, so they may be shown of sealed sets, too.
    """
    has_votes = Q(people_wrong__isnull=False, ambiguity__isnull=False)
    margin = Cast(
        1 - F("people_wrong") - F("right_share") - F("ambiguity"), output_field=FloatField()
    )
    tells = Q(
        discrimination__gt=NORMAL_QUANTILE * F("discrimination_error"),
        right_share__gte=HARD_SHARE,
        right_share__lte=EASY_SHARE,
    )
    rows = (
        ItemProperty.objects.filter(fit__version__in=version_ids)
        .order_by()  # the model's default order would be part of the grouping
        .values("fit__version", "example__annotator")
        .annotate(
            items=Count("pk"),
            telling=Count("pk", filter=tells),
            judged=Count("pk", filter=has_votes),
            margin_sum=Sum(margin, filter=has_votes),
        )
    )
    by_version: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_version[row["fit__version"]].append(dict(row))
    return by_version


def _compute_margin(rows: Sequence[Mapping[str, Any]]) -> Cell:
    """Return people − models − ambiguity in points, with an interval clustered by author."""
    # Authors without a judged example would count as clusters of size 0.
    clusters = [(row["margin_sum"], row["judged"]) for row in rows if row["judged"]]
    if len(clusters) < MIN_AUTHORS or sum(judged for _total, judged in clusters) < MIN_ITEMS:
        return EMPTY_CELL
    ratio = compute_clustered_ratio(clusters)
    # One decimal, so that a single model's answers can't be computed from two meters.
    value, half_width = 100 * ratio.value, 100 * ratio.half_width
    return Cell(round(value, 1), round(value - half_width, 1), round(value + half_width, 1))


def _compute_telling(telling_count: int, item_count: int) -> Cell:
    """Return the share of examples that still tell models apart, in percent; empty without any."""
    if item_count < MIN_ITEMS:
        return EMPTY_CELL
    low, high = compute_wilson_interval(telling_count, item_count)
    return Cell(100 * telling_count / item_count, 100 * low, 100 * high)
