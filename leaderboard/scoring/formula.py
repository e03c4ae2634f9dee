"""The anchored score of a board in one sentence, with its shares and anchors."""

from collections.abc import Mapping
from typing import Any


def formula(weights: Mapping[str, float], main: str, anchors: Mapping[str, Any] | None) -> str:
    """Of a board, or of a snapshot of one, in English; empty where it is not anchored.

    anchors: as of `leaderboard.board.tables`: versions, and by metric the values at 0 and 1.
    """
    if anchors is None:
        return ""
    scales = anchors["scales"]
    used = {name: weight for name, weight in weights.items() if weight and name in scales}
    total = sum(used.values()) or 1
    shares = " + ".join(
        f"{weight / total:.3g}" + ("" if name == main else f" × {_words(name)}")
        for name, weight in used.items()
    )
    places = "; ".join(
        f"{_words(name)} from {scales[name]['low']:.4g} to {scales[name]['high']:.4g}"
        for name in dict.fromkeys([main, *used])
    )
    version = f"{anchors['version']}.{anchors.get('costs', 0)}"
    return (
        f"Score = 100 × q × ({shares}): q is the place of {_words(main)}, and each place is from 0 "
        f"to 1 on a fixed scale: {places} (reference pool {version}); so nothing counts "
        "without understanding, and no other model moves a score."
    )


def _words(name: str) -> str:
    return name.replace("_", " ")
