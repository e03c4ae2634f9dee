"""The report of a judge: its measures, and its ranking beside people's. Loads numpy."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from leaderboard.arena.battles.breaking import list_pair_votes
from leaderboard.arena.battles.weights import compute_draw_weight
from leaderboard.arena.judges.selectors import Orders, find_battles_to_judge
from leaderboard.arena.judges.verdicts import JudgedPair, JudgeMeasures, Vote, measure_judge
from leaderboard.arena.report import Report, VoteRow, rank_rows
from leaderboard.models import ArenaJudge, Battle
from validation.rates.rates import Rate

RANKING_DRAWS = 200
"""Draws of the bootstrap, fewer than for people's ranking, because each request renews both."""


def build_report(judge: ArenaJudge, orders: Mapping[tuple[int, str], Orders]) -> dict[str, Any]:
    """Return a judge's report as JSON values.

    orders: the judge's choices by battle and pair. Battles that were withdrawn after the judge was
    asked don't count. Both rankings are over the same battles; without a battle they are None.
    """
    judged_pairs: list[JudgedPair] = []
    judge_rows: list[VoteRow] = []
    people_rows: list[VoteRow] = []
    waiting_count = 0
    for battle in _read_battles(judge):
        votes, voter = list_pair_votes(battle.winner, battle.ranking), battle.voter_id
        choices = {vote.pair: orders.get((battle.pk, vote.pair), {}) for vote in votes}
        # One order alone says nothing: the position may have decided it. And a ranking of which
        # only some pairs were asked about would weigh less than others.
        if any(len(pair_choices) < 2 for pair_choices in choices.values()):
            waiting_count += 1
            continue
        # Drawn as people's ranking weights them, so that both rankings have one target.
        draw_weight = compute_draw_weight(battle.chance, battle.pair_count)
        for vote in votes:
            by_person: Vote = "tie"
            if vote.winner in ("left", "right"):
                by_person = cast(Vote, vote.winner)
            shown, swapped = choices[vote.pair][False], choices[vote.pair][True]
            judged_pair = JudgedPair(battle.pk, voter, by_person, shown, swapped)
            judged_pairs.append(judged_pair)
            weights = vote.weight, draw_weight
            first, second = (battle.get_contestant_id(side) for side in (vote.first, vote.second))
            # Clustered by the voter: one person's prompts are alike, whoever judges the answers.
            judge_rows.append((first, second, judged_pair.winner, voter, *weights))
            people_rows.append((first, second, by_person, voter, *weights))
    report: dict[str, Any] = _describe_measures(measure_judge(judged_pairs))
    report["waiting"] = waiting_count
    report["ranking"] = _describe_ranking(judge, judge_rows)
    report["people"] = _describe_ranking(judge, people_rows)
    return report


def _read_battles(judge: ArenaJudge) -> Iterator[Battle]:
    """Yield the battles that the judge may be asked about, with their further sides."""
    battles = find_battles_to_judge(judge).prefetch_related("extra_sides")
    # In chunks, because an arena may have more battles than fit into memory.
    return battles.iterator(chunk_size=2000)


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
