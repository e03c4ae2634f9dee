"""The definition of each share in words, for pages and docs/statistics.md."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.text.words import gettext_noop


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a share; `counted` names in a word or two what its n counts."""

    title: str
    formula: str
    counted: str
    unit: str = "%"

    def __str__(self) -> str:
        return f"{self.title}: {self.formula}"


DEFINITIONS: Mapping[str, Definition] = {
    "mer": Definition(
        gettext_noop("MER, model error rate"),
        gettext_noop("tries that fooled the model ÷ all tries"),
        gettext_noop("tries"),
    ),
    "vmer": Definition(
        gettext_noop("vMER, validated model error rate"),
        gettext_noop("catches ÷ all tries"),
        gettext_noop("tries"),
    ),
    "fooled_of_decided": Definition(
        gettext_noop("share over decided"),
        gettext_noop("catches ÷ decided tries"),
        gettext_noop("decided"),
    ),
    "verified_of_judged": Definition(
        gettext_noop("confirmed share"),
        gettext_noop("confirmed tries ÷ judged tries"),
        gettext_noop("judged"),
    ),
    "majority_share": Definition(
        gettext_noop("majority share"),
        gettext_noop("tries with a consensus, by the policy ÷ judged tries"),
        gettext_noop("judged"),
    ),
    "unanimous_share": Definition(
        gettext_noop("unanimous share"),
        gettext_noop("tries whose votes are all equal (one vote is) ÷ judged tries"),
        gettext_noop("judged"),
    ),
    "human_accuracy": Definition(
        gettext_noop("human accuracy"),
        gettext_noop(
            "votes that say what most of the others say ÷ votes where the others have a first "
            "choice"
        ),
        gettext_noop("votes"),
    ),
    "model_accuracy": Definition(
        gettext_noop("model accuracy"),
        gettext_noop(
            "the same votes, where the target says what those others say ÷ the same votes"
        ),
        gettext_noop("votes"),
    ),
    "human_model_gap": Definition(
        gettext_noop("gap"),
        gettext_noop("human accuracy − model accuracy, on the same votes"),
        gettext_noop("votes"),
        gettext_noop(" points"),
    ),
}
