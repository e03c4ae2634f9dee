"""Published conversations as preference data for training, in the formats that TRL reads.

A DPO row is a decided battle: the first message, and what followed it on the winner's side and on
the loser's. A KTO row is one side of a battle and whether it is desirable. Ties are left out of
both, because they express no preference. If both sides of a battle were bad, both are undesirable.
A ranking of several answers gives a DPO row for each pair with different places, and no KTO row,
because the best of several answers may still be undesirable.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import Any

from leaderboard.models import SIDES, Comparison

Winner = Comparison.Winner
Message = Mapping[str, str]


def yield_dpo_rows(battles: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a pair for each battle that one side won, and for each decided pair of a ranking.

    battles: rows of the published file.
    """
    for battle in battles:
        if "ranking" in battle:
            yield from _yield_ranked_rows(battle)
            continue
        if battle["winner"] not in SIDES or not battle["turns"]:
            continue
        # Only one of them, because ties express no preference.
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


def _yield_ranked_rows(battle: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each pair of a ranking's answers with different places."""
    places = battle["ranking"]
    for better, worse in permutations(range(len(places)), 2):
        # Each pair comes up in both orders; a shared place prefers nothing.
        if not battle["turns"] or places[better] >= places[worse]:
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
    for battle in battles:
        # A place says what is better, not whether it is wanted.
        if "ranking" in battle:
            continue
        is_decided = battle["winner"] in (*SIDES, Winner.BOTH_BAD)
        if not is_decided or not battle["turns"]:
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


FORMATS = {"dpo": yield_dpo_rows, "kto": yield_kto_rows}
"""The formats by their name in a URL."""
