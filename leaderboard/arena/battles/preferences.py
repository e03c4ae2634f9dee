"""Published conversations as preference data for training, in the formats that TRL reads.

A DPO row is a decided battle: the first message, and what followed it on the winner's side and on
the loser's. A KTO row is one side of a battle and whether it is desirable. Ties are left out of
both, because they express no preference, and have a format of their own. If both sides of a battle
were bad, both are undesirable. A ranking of several answers gives a DPO row for each pair with
different places, a tie for each pair with one place, and no KTO row, because the best of several
answers may still be undesirable.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any

from leaderboard.models import SIDES, Comparison

Winner = Comparison.Winner
Message = Mapping[str, str]


def yield_dpo_rows(battles: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a pair for each battle that one side won, and for each decided pair of a ranking.

    battles: rows of the published file.
    """
    for battle in _yield_counting_battles(battles):
        if "ranking" in battle:
            yield from _yield_ranked_rows(battle)
            continue
        # Ties express no preference.
        if battle["winner"] not in SIDES:
            continue
        winner = battle["winner"]
        loser = SIDES[1 - SIDES.index(winner)]
        prompt, chosen = split_messages(battle["turns"], winner)
        _prompt, rejected = split_messages(battle["turns"], loser)
        yield {
            "id": battle["id"],
            "prompt": prompt,
            "chosen": chosen,
            "rejected": rejected,
            "chosen_model": battle[winner],
            "rejected_model": battle[loser],
        }


def _yield_counting_battles(
    battles: Iterable[Mapping[str, Any]],
) -> Iterator[Mapping[str, Any]]:
    """Yield the battles that have an answer and whose vote counts in the ranking."""
    for battle in battles:
        # Whoever reads a model's name no longer judges the answers alone.
        if battle["turns"] and not battle["names_itself"]:
            yield battle


def _yield_ranked_rows(battle: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each pair of a ranking's answers with different places."""
    places = battle["ranking"]
    for better, worse in permutations(range(len(places)), 2):
        # Each pair comes up in both orders; a shared place prefers nothing.
        if places[better] >= places[worse]:
            continue
        prompt, chosen = split_messages(battle["turns"], better)
        _prompt, rejected = split_messages(battle["turns"], worse)
        yield {
            "id": f"{battle['id']}-{better + 1}-{worse + 1}",
            "prompt": prompt,
            "chosen": chosen,
            "rejected": rejected,
            "chosen_model": battle["models"][better],
            "rejected_model": battle["models"][worse],
        }


def yield_kto_rows(battles: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each side of each battle that is not a tie, and whether it is desirable."""
    for battle in _yield_counting_battles(battles):
        # A place says what is better, not whether it is wanted.
        if "ranking" in battle:
            continue
        if battle["winner"] not in (*SIDES, Winner.BOTH_BAD):
            continue
        for side in SIDES:
            prompt, completion = split_messages(battle["turns"], side)
            yield {
                "id": f"{battle['id']}-{side}",
                "prompt": prompt,
                "completion": completion,
                "label": battle["winner"] == side,
                "model": battle[side],
            }


def yield_tie_rows(battles: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each battle that neither side won, and for each shared place of a ranking.

    `winner` is `tie` or `both_bad`, and `completions` and `models` have the same order.
    """
    for battle in _yield_counting_battles(battles):
        if "ranking" in battle:
            yield from _yield_shared_places(battle)
            continue
        if battle["winner"] not in (Winner.TIE, Winner.BOTH_BAD):
            continue
        models = [battle[side] for side in SIDES]
        yield _build_tie_row(battle, battle["id"], SIDES, models, battle["winner"])


def _yield_shared_places(battle: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a tie for each pair of a ranking's answers that share a place."""
    places = battle["ranking"]
    for first, second in combinations(range(len(places)), 2):
        if places[first] == places[second]:
            row_id = f"{battle['id']}-{first + 1}-{second + 1}"
            models = [battle["models"][index] for index in (first, second)]
            yield _build_tie_row(battle, row_id, (first, second), models, Winner.TIE)


def _build_tie_row(
    battle: Mapping[str, Any],
    row_id: str,
    sides: Sequence[str | int],
    models: Sequence[str],
    winner: str,
) -> dict[str, Any]:
    split_sides = [split_messages(battle["turns"], side) for side in sides]
    return {
        "id": row_id,
        "prompt": split_sides[0][0],
        "completions": [completion for _prompt, completion in split_sides],
        "winner": str(winner),
        "models": models,
    }


def split_messages(
    turns: Iterable[Mapping[str, Any]], side: str | int
) -> tuple[list[Message], list[Message]]:
    """Return the first message, and all that followed it on one side.

    side: `left` or `right`, or in a ranking the index of the answer.


    >>> turn = {"prompt": "Hello", "left": {"text": "Hi."}, "right": {"text": "Yes?"}}
    >>> split_messages([turn], "left")
    ([{'role': 'user', 'content': 'Hello'}], [{'role': 'assistant', 'content': 'Hi.'}])
    """
    messages: list[Message] = []
    for turn in turns:
        messages.append({"role": "user", "content": turn["prompt"]})
        answer = turn["answers"][side] if isinstance(side, int) else turn[side]
        messages.append({"role": "assistant", "content": answer["text"]})
    return messages[:1], messages[1:]


def write_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield rows as JSON lines."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


FORMATS = {"dpo": yield_dpo_rows, "kto": yield_kto_rows, "ties": yield_tie_rows}
"""The formats by their name in a URL."""
