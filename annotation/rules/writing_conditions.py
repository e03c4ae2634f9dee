"""Conditions under which a text is written, and the signals of machine text in each.

An owner switches conditions on for a campaign; one of them, or none, is drawn for each assignment.
No signal says of a text, or of a person, who wrote it: see `machine_share`.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

NONE = "none"
PASTE_OFF = "paste_off"
ASK = "ask"
HIDDEN = "hidden"
DETERRENTS = (PASTE_OFF, ASK, HIDDEN)
"""What an owner can switch on, besides which nothing (NONE) is always drawn as well."""
MACHINE_CHANCE = 0.5
"""In a labelled study, the chance that a person is told to use a model."""
MAX_TYPED_PER_SECOND = 12.0
"""Characters; 144 words a minute, which few people reach while they compose."""
UNTYPED = "untyped"
"""Ends the name of a stratum whose texts have no evidence of typing."""
# No word of everyday texts, so that nobody uses it by chance.
MARKER_WORDS = ("marzipan", "periwinkle", "thimble", "gondola", "obelisk", "quince", "sundial")


class WritingPlan(NamedTuple):
    """What a campaign draws for each assignment of its people.

    deterrents: those that its owner switched on. is_labelled: whether people are told to write with
    or without a model, so that the truth is known.
    """

    deterrents: Sequence[str] = ()
    is_labelled: bool = False


def draw_condition(plan: WritingPlan, draw: Callable[[], float]) -> dict[str, Any] | None:
    """Return the condition of an assignment, with its probability; None if there is no choice.

    draw: returns a number from 0 to below 1. The key `told` is True or False in a labelled study:
    whether the person is told to use a model.
    """
    conditions = (NONE, *[name for name in DETERRENTS if name in plan.deterrents])
    if len(conditions) == 1 and not plan.is_labelled:
        return None
    condition: dict[str, Any] = {
        "condition": conditions[int(draw() * len(conditions))],
        "probability": 1 / len(conditions),
    }
    if plan.is_labelled:
        condition["told"] = draw() < MACHINE_CHANCE
    return condition


def choose_marker(assignment_id: int) -> str:
    """Return the word that the hidden instruction of an assignment asks for."""
    return MARKER_WORDS[assignment_id % len(MARKER_WORDS)]


def record_signs(
    condition: Mapping[str, Any] | None, text: str, assignment_id: int
) -> dict[str, Any] | None:
    """Return what to keep with a text: its condition, and whether it followed a hidden instruction.

    The author's answer to the question is added later, as `admitted`.
    """
    if condition is None:
        return None
    signs = dict(condition)
    if condition["condition"] == HIDDEN:
        marker = choose_marker(assignment_id)
        signs["followed"] = re.search(rf"\b{marker}\b", text, re.IGNORECASE) is not None
    return signs


def read_signals(
    signs: Mapping[str, Any] | None, typing: Mapping[str, float] | None
) -> dict[str, bool]:
    """Return the signals of a text: which there are under its condition, and which of them fire.

    signs: as `record_signs` returns, None for a text without a condition. typing: as
    `read_typing_evidence` returns, None if unknown.
    """
    condition = get_condition(signs)
    signals: dict[str, bool] = {}
    # A picture or a recording has no characters, so nothing is known of typing.
    if typing and typing["characters"]:
        signals["pasted"] = typing["pasted"] * 2 > typing["characters"]
        typed_characters = typing["characters"] - typing["pasted"]
        signals["fast"] = typed_characters > MAX_TYPED_PER_SECOND * typing["active"]
    if condition == ASK:
        # Who doesn't answer hasn't admitted it; the labelled study counts them in the same way.
        signals["admitted"] = bool(signs and signs.get("admitted"))
    if condition == HIDDEN:
        signals["followed"] = bool(signs and signs.get("followed"))
    return signals


def name_stratum(signs: Mapping[str, Any] | None, signals: Collection[str]) -> str:
    """Return the stratum of a text: its condition, and whether its typing is known."""
    condition = get_condition(signs)
    return condition if "pasted" in signals else f"{condition}-{UNTYPED}"


def get_condition(signs: Mapping[str, Any] | None) -> str:
    """Return the condition under which a text was written; texts without a draw have none."""
    return str(signs["condition"]) if signs else NONE
