"""Prints the scene rows of the NLI seeds, made from the parts in tasks/official/nli/scenes.yaml.

A scene has people, an activity and a place. The label follows from how the parts of a hypothesis
relate to those of the premise: a contradiction if one part is excluded, neutral if one is open.

    python scripts/nli_scenes.py >> tasks/official/nli/seed.jsonl
"""

import json
import random
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import yaml

PARTS = Path(__file__).resolve().parents[1] / "tasks" / "official" / "nli" / "scenes.yaml"
SCENES = 150
# How the people, the activity and the place of a hypothesis relate to those of the scene.
# "instead" is the activity of a second premise, which the scene excludes; "": no place.
PLANS = (
    [("follows", "follows", "")],
    [("same", "excluded", "")],
    [("same", "open", "")],
    [("same", "instead", "")],
    [("follows", "same", ""), ("follows", "follows", "same"), ("follows", "same", "follows")],
    [("excluded", "same", ""), ("follows", "same", "excluded"), ("excluded", "follows", "")],
    [("same", "open", "same"), ("follows", "open", "follows"), ("follows", "open", "")],
    [("follows", "follows", "follows"), ("same", "same", "same")],
)
PLURAL = {"two", "three", "four", "several", "some", "many", "men", "women", "kids", "girls"}
PLURAL |= {"boys", "people", "young"}
PLURAL_STARTS = ("A few ", "A couple of ", "A pair ", "A number ")


def rows() -> Iterator[dict[str, str]]:
    """The rows, the same each time; those of a scene are a group."""
    parts = yaml.safe_load(PARTS.read_text())
    chance = random.Random(0)
    seen: set[tuple[str, str]] = set()
    for number, what in zip(range(SCENES), cycle(parts["what"]), strict=False):
        for premise, hypothesis, label in _scene(parts, what, chance):
            if (premise, hypothesis) not in seen:
                seen.add((premise, hypothesis))
                group = f"nli-scene-{number:03}"
                row = {"group": group, "premise": premise, "hypothesis": hypothesis}
                yield {**row, "label": label}


def _scene(
    parts: dict[str, Any], what: str, chance: random.Random
) -> Iterator[tuple[str, str, str]]:
    """(premise, hypothesis, label) of one scene: with its place, without it, and changed."""
    activity = parts["what"][what]
    crowd = [who for who in parts["who"] if not (activity.get("alone") and _plural(who))]
    who, where = chance.choice(crowd), chance.choice(activity["where"])
    people, place = parts["who"][who], parts["where"][where]
    instead = chance.choice(activity["excluded"])
    hypotheses = []
    for plans in PLANS:
        plan = chance.choice(plans)
        words = (
            _word(who, people, plan[0], chance),
            instead if plan[1] == "instead" else _word(what, activity, plan[1], chance),
            _word(where, place, plan[2], chance),
        )
        hypotheses.append((plan, _sentence(*words)))
    for plan, hypothesis in hypotheses:
        yield _sentence(who, what, where), hypothesis, _label(plan)
        yield _sentence(who, what), hypothesis, _label((*plan[:2], plan[2] and "open"))
        changed = {"instead": "follows", "same": "excluded"}.get(plan[1])
        if changed and not hypothesis.startswith("No"):
            relations = plan[0], changed, plan[2] and "open"
            yield _sentence(who, instead), hypothesis, _label(relations)
    denied = chance.choice([what, *activity["excluded"]])
    be = "are" if _plural(who) else "is"
    label = "contradiction" if denied == what else "entailment"
    yield _sentence(who, what, where), f"{who} {be} not {denied}.", label


def _word(same: str, part: dict[str, list[str]], relation: str, chance: random.Random) -> str:
    if relation in ("", "same"):
        return same if relation else ""
    return chance.choice(part[relation])


def _label(relations: tuple[str, ...]) -> str:
    if {"excluded", "instead"} & set(relations):
        return "contradiction"
    return "neutral" if "open" in relations else "entailment"


def _sentence(who: str, what: str, where: str = "") -> str:
    be = "are" if _plural(who) else "is"
    return " ".join(filter(None, (who, be, what, where))) + "."


def _plural(who: str) -> bool:
    first = who.split()[0].lower()
    return " and " in who or first in PLURAL or who.startswith(PLURAL_STARTS)


if __name__ == "__main__":
    for row in rows():
        print(json.dumps(row))
