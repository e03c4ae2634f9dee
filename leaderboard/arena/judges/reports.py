"""The report of a judge: its measures, and its ranking beside people's. Loads numpy."""

from collections.abc import Mapping
from typing import Any

from leaderboard.arena.judges.selectors import Orders, find_battles_to_judge
from leaderboard.arena.judges.verdicts import JudgedBattle, JudgeMeasures, Vote, measure_judge
from leaderboard.arena.report import Report, VoteRow, rank_rows
from leaderboard.models import ArenaJudge
from validation.rates.rates import Rate

RANKING_DRAWS = 200
"""Draws of the bootstrap, fewer than for people's ranking, because each request renews both."""


def build_report(judge: ArenaJudge, orders: Mapping[int, Orders]) -> dict[str, Any]:
    """Return a judge's report as JSON values.

    orders: the judge's choices by battle. Battles that were withdrawn after the judge was asked
    don't count. Both rankings are over the same battles; without a battle they are None.
    """
    judged_battles: list[JudgedBattle] = []
    judge_rows: list[VoteRow] = []
    people_rows: list[VoteRow] = []
    waiting_count = 0
    columns = ("pk", "left_id", "right_id", "winner", "voter_id")
    for pk, left, right, winner, voter in find_battles_to_judge(judge).values_list(*columns):
        choices = orders.get(pk, {})
        # One order alone says nothing: the position may have decided it.
        if len(choices) < 2:
            waiting_count += 1
            continue
        by_person: Vote = winner if winner in ("left", "right") else "tie"
        judged_battle = JudgedBattle(voter, by_person, choices[False], choices[True])
        judged_battles.append(judged_battle)
        # Clustered by the voter: one person's prompts are alike, whoever judges the answers.
        judge_rows.append((left, right, judged_battle.winner, voter, 1.0))
        people_rows.append((left, right, by_person, voter, 1.0))
    report: dict[str, Any] = _describe_measures(measure_judge(judged_battles))
    report["waiting"] = waiting_count
    report["ranking"] = _describe_ranking(judge, judge_rows)
    report["people"] = _describe_ranking(judge, people_rows)
    return report


def _describe_measures(measures: JudgeMeasures) -> dict[str, Any]:
    return {
        "battles": measures.battles,
        "voters": measures.voters,
        "is_calibrated": measures.is_calibrated,
        "agreement": measures.agreement._asdict(),
        "consistency": _describe_rate(measures.consistency),
        "first_share": _describe_rate(measures.first_share),
        "counts": measures.counts,
    }


def _describe_rate(rate: Rate | None) -> dict[str, Any] | None:
    if rate is None:
        return None
    return {"value": rate.value, "low": rate.low, "high": rate.high, "n": rate.n}


def _describe_ranking(judge: ArenaJudge, rows: list[VoteRow]) -> dict[str, Any] | None:
    # No fit without a vote.
    if not rows:
        return None
    ranking: Report = rank_rows(judge.task, rows, draws=RANKING_DRAWS)
    return {**ranking.as_json, "is_bounded": ranking.is_bounded}
