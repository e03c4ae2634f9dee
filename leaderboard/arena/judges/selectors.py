"""Read the battles that judges are asked about, their verdicts and their reports."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from django.db.models import QuerySet

from leaderboard.arena.battles.breaking import PairVote
from leaderboard.arena.board import ArenaLine, build_arena_lines
from leaderboard.arena.judges.verdicts import Choice
from leaderboard.models import ArenaJudge, ArenaVerdict, Battle, BattleSide, Turn
from tasks.models import TargetModel, Task

FIRST_FIELD, SECOND_FIELD = "first_conversation", "second_conversation"
"""The fields of a judge's prompt that contain the two conversations."""
Orders = Mapping[bool, Choice]
"""A judge's choices in a pair of answers, by whether the sides were swapped."""
PairOrders = dict[tuple[int, str], dict[bool, Choice]]
"""A judge's choices by battle and pair, such as `left-right`."""


def find_battles_to_judge(judge: ArenaJudge) -> QuerySet[Battle]:
    """Return the battles that a judge may be asked about, in a random order that never changes.

    Only published conversations with a vote or a ranking that counts are included. Battles in which
    the judge's own model answered are left out, because models prefer their own answers.
    """
    own_ids = []
    for contestant in judge.task.contestants.select_related("target"):
        if contestant.target and _is_same_model(contestant.target, judge):
            own_ids.append(contestant.pk)
    battles = Battle.objects.filter(
        task=judge.task, release=Battle.Release.RELEASED, names_itself=False, gold=None
    )
    # Of random ids, so that those asked before the calls run out are a random sample.
    voted_battles = battles.exclude(winner="").order_by("uuid")
    # The further sides by a subquery: a join would repeat battles.
    own_sides = BattleSide.objects.filter(contestant__in=own_ids).values("battle")
    others = voted_battles.exclude(left__in=own_ids).exclude(right__in=own_ids)
    return others.exclude(pk__in=own_sides)


def _is_same_model(target: TargetModel, judge: ArenaJudge) -> bool:
    """Return whether a target calls the judge's model, perhaps with another prompt."""
    own_target = judge.target
    if target.pk == own_target.pk:
        return True
    # The same name on another server may be another model.
    if target.base_url != own_target.base_url:
        return False
    # Without an address our own server runs the model, from its source.
    if not target.url:
        return (target.source, target.revision) == (own_target.source, own_target.revision)
    return bool(target.options.get("model") == own_target.options.get("model"))


def read_orders(judge: ArenaJudge) -> PairOrders:
    """Return the judge's choices so far by battle and pair."""
    orders: PairOrders = defaultdict(dict)
    rows = ArenaVerdict.objects.filter(judge=judge)
    columns = ("battle", "pair", "is_swapped", "choice")
    for battle, pair, is_swapped, choice in rows.values_list(*columns):
        orders[battle, pair][is_swapped] = cast(Choice, choice)
    return orders


def read_conversation(battle: Battle, side: str) -> str:
    """Return the conversation of one side as text."""
    parts = []
    for turn in battle.turns.all():
        # A failed message has no answers to compare.
        if turn.state != Turn.State.DONE:
            continue
        answers = {reply.side: reply.text for reply in turn.replies.all()}
        parts += [f"Person: {turn.prompt}", f"Assistant: {answers.get(side, '')}"]
    return "\n\n".join(parts)


def build_judge_inputs(battle: Battle, vote: PairVote, *, is_swapped: bool) -> dict[str, str]:
    """Return the fields of a question about a pair of answers, in one of both orders."""
    sides = (vote.second, vote.first) if is_swapped else (vote.first, vote.second)
    first, second = (read_conversation(battle, side) for side in sides)
    return {FIRST_FIELD: first, SECOND_FIELD: second}


def find_arena_judges(task: Task, *, only_shown: bool = False) -> QuerySet[ArenaJudge]:
    """Return the judges of an arena, newest first.

    only_shown: only those whose ranking the leaderboard shows, which are calibrated.
    """
    judges = task.arena_judges.select_related("target", "task").order_by("-pk")
    # A judge that lost its calibration, for example by withdrawn battles, is no longer shown.
    if only_shown:
        judges = judges.filter(is_shown=True, report__is_calibrated=True)
    return judges


class RankedPair(NamedTuple):
    """A model with its strength by the judge's verdicts, and by people's votes, on one page."""

    name: str
    by_judge: ArenaLine
    by_people: ArenaLine


def pair_rankings(report: Mapping[str, Any]) -> Sequence[RankedPair]:
    """Return a judge's ranking beside people's, both over the same battles."""
    people = {line.model["name"]: line for line in build_arena_lines(report["people"])}
    rows = []
    for line in build_arena_lines(report["ranking"]):
        name = line.model["name"]
        rows.append(RankedPair(name, line, people[name]))
    return rows
