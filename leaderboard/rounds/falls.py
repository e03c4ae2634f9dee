"""The last fall of the models' mean from round to round, split by the ruler. Loads numpy."""

from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.numbers import format_decimal
from evaluation.models import Ruler
from leaderboard.board.matrix import Matrix
from leaderboard.board.one_ruler import RulerScore, build_ruler_board, find_obstacle
from leaderboard.rounds.harder import PlacedScore, SplitFall, split_fall
from tasks.models import Task

MIN_HALF_WIDTH = 1e-6
"""So that an expected score never looks like a measured one, which has no interval here."""


@dataclass(frozen=True)
class RoundFall:
    """The fall from the last but one round on the ruler to the last one."""

    earlier: int
    later: int
    split: SplitFall

    @property
    def words(self) -> str:
        """Say in one sentence how much of the fall is harder examples."""
        split = self.split
        values = {
            "earlier": self.earlier,
            "later": self.later,
            "points": format_decimal(100 * abs(split.fall)),
            "harder": format_decimal(100 * split.harder),
            "low": format_decimal(100 * split.low),
            "high": format_decimal(100 * split.high),
            "others": format_decimal(100 * split.others),
        }
        # A rise may hide harder examples, so both directions say what the same models would lose.
        if split.fall < 0:
            text = _(
                "From round %(earlier)d to round %(later)d, the mean of the models rose by "
                "%(points)s points. The same models would have lost %(harder)s points (95%% "
                "interval %(low)s to %(high)s)."
            )
        else:
            text = _(
                "From round %(earlier)d to round %(later)d, the mean of the models fell by "
                "%(points)s points. Harder examples explain %(harder)s of them (95%% interval "
                "%(low)s to %(high)s), other models %(others)s."
            )
        return text % values

    @property
    def basis(self) -> str:
        """Say on how many models the sentence rests."""
        text = ngettext(
            "%(n)d model ran both rounds. The missing scores of others are expected by the ruler.",
            "%(n)d models ran both rounds. The missing scores of others are expected by the ruler.",
            self.split.both_count,
        )
        return text % {"n": self.split.both_count}

    def build_json(self) -> dict[str, Any]:
        """Return the fall as JSON values, in points."""
        split = self.split
        return {
            "earlier": self.earlier,
            "later": self.later,
            "fall": 100 * split.fall,
            "harder": {
                "value": 100 * split.harder,
                "low": 100 * split.low,
                "high": 100 * split.high,
            },
            "others": 100 * split.others,
            "both": split.both_count,
        }


def find_last_fall(task: Task, matrix: Matrix) -> RoundFall | None:
    """Return the fall between the last two rounds on the ruler; None without two, or if too few.

    Models against which people wrote one of the rounds are left out: it is harder for them alone.
    At most six queries.
    """
    found = find_obstacle(task, matrix)
    if not isinstance(found, Ruler):
        return None
    board = build_ruler_board(found, matrix)
    # Uploaded sets have no round, and so no place in time.
    rounds = sorted(
        (round for round in board.rounds if round.set.round is not None),
        key=lambda round: round.set.round or 0,
    )[-2:]
    if len(rounds) < 2:
        return None
    loops = matrix.numbers.in_the_loop[:, [round.set_index for round in rounds]].tolist()
    lines = [line for line in board.lines if not any(loops[line.model_index])]
    scores = replace(board, rounds=tuple(rounds)).read_scores(lines)
    # A model that joined meanwhile may still lack one of them.
    pairs = [pair for pair in scores.values() if len(pair) == 2]
    errors = rounds[0].item_error / 100, rounds[1].item_error / 100
    split = split_fall(
        [_place(pair[0]) for pair in pairs], [_place(pair[1]) for pair in pairs], errors
    )
    if split is None:
        return None
    return RoundFall(rounds[0].set.round or 0, rounds[1].set.round or 0, split)


def _place(score: RulerScore) -> PlacedScore:
    """Return a model's measured score, or else the expected one."""
    if score.measured.value is not None:
        return PlacedScore(score.measured.value / 100)
    low, high = score.expected.low or 0.0, score.expected.high or 0.0
    return PlacedScore((score.expected.value or 0.0) / 100, max((high - low) / 200, MIN_HALF_WIDTH))
