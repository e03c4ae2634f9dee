"""What each share means, in words; shown beside the number and in docs/statistics.md."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Definition:
    """A share as people read it; `counted` is what its n counts, in a word or two."""

    title: str
    formula: str
    counted: str
    unit: str = "%"

    def __str__(self) -> str:
        return f"{self.title}: {self.formula}"


DEFINITIONS: Mapping[str, Definition] = {
    "mer": Definition(
        "MER, model error rate", "examples that fooled the target ÷ all examples", "tries"
    ),
    "vmer": Definition(
        "vMER, validated model error rate", "validated model errors ÷ all examples", "tries"
    ),
    "fooled_of_decided": Definition(
        "share over decided", "validated model errors ÷ examples with a consensus", "decided"
    ),
    "verified_of_judged": Definition(
        "verified share", "verified examples ÷ examples with a vote", "judged"
    ),
    "majority_share": Definition(
        "majority share",
        "examples with a consensus, by the policy ÷ examples with a vote",
        "judged",
    ),
    "unanimous_share": Definition(
        "unanimous share",
        "examples whose votes are all equal (one vote is) ÷ examples with a vote",
        "judged",
    ),
    "human_accuracy": Definition(
        "human accuracy",
        "votes that say what most of the others say ÷ votes where the others have a first choice",
        "votes",
    ),
    "model_accuracy": Definition(
        "model accuracy",
        "the same votes, where the target says what those others say ÷ the same votes",
        "votes",
    ),
    "human_model_gap": Definition(
        "gap", "human accuracy − model accuracy, on the same votes", "votes", " points"
    ),
}
