"""The values of judges for pages: percentages with their intervals, and both rankings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from core.numbers import format_percent
from leaderboard.arena.judges.selectors import RankedPair, pair_rankings
from leaderboard.arena.judges.verdicts import VERDICTS, VOTES
from leaderboard.models import ArenaJudge


class ShownRate(NamedTuple):
    """A share with its interval, as texts, and the number of battles."""

    value: str
    low: str
    high: str
    n: int


class JudgeCard(NamedTuple):
    """A judge as pages show it. rates: None while no battle tells them."""

    judge: ArenaJudge
    report: Mapping[str, Any]
    is_calibrated: bool
    consistency: ShownRate | None
    first_share: ShownRate | None
    counts: Sequence[tuple[str, Sequence[int]]]
    rankings: Sequence[RankedPair]


def build_judge_cards(judges: Iterable[ArenaJudge]) -> list[JudgeCard]:
    """Return the judges as pages show them."""
    cards = []
    for judge in judges:
        report = judge.report
        table = report.get("counts", {})
        counts = []
        for vote in VOTES if table else ():
            counts.append((vote, [table[vote][verdict] for verdict in VERDICTS]))
        cards.append(
            JudgeCard(
                judge=judge,
                report=report,
                is_calibrated=report.get("is_calibrated", False),
                consistency=_format_rate(report.get("consistency")),
                first_share=_format_rate(report.get("first_share")),
                counts=counts,
                rankings=pair_rankings(report) if report.get("ranking") else (),
            )
        )
    return cards


def _format_rate(rate: Mapping[str, Any] | None) -> ShownRate | None:
    if rate is None:
        return None
    value, low, high = (format_percent(rate[name]) for name in ("value", "low", "high"))
    return ShownRate(value, low, high, rate["n"])
