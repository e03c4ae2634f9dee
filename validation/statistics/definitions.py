"""The definition of each share in words, for pages and docs/statistics.md."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.text.words import gettext_noop


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a share.

    title: its name on pages, in charts and in files for people. counted: what its n counts, in a
    word or two. symbol: the term of the literature, which documents and downloads use.
    """

    title: str
    formula: str
    counted: str
    unit: str = "%"
    symbol: str = ""

    def __str__(self) -> str:
        return f"{self.title}: {self.formula}"


DEFINITIONS: Mapping[str, Definition] = {
    "mer": Definition(
        gettext_noop("Model error rate"),
        gettext_noop("tries that the model got wrong ÷ all tries"),
        gettext_noop("tries"),
        symbol="MER",
    ),
    "vmer": Definition(
        gettext_noop("Catch rate"),
        gettext_noop("catches ÷ all tries"),
        gettext_noop("tries"),
        symbol="vMER",
    ),
    "fooled_of_decided": Definition(
        gettext_noop("Catch rate among decided tries"),
        gettext_noop("catches ÷ decided tries"),
        gettext_noop("decided"),
    ),
    "verified_of_judged": Definition(
        gettext_noop("Confirmed share"),
        gettext_noop("confirmed tries ÷ judged tries"),
        gettext_noop("judged"),
    ),
    "majority_share": Definition(
        gettext_noop("Consensus reached"),
        gettext_noop("tries with a consensus by the rule ÷ judged tries"),
        gettext_noop("judged"),
    ),
    "unanimous_share": Definition(
        gettext_noop("Unanimous votes"),
        gettext_noop("tries whose votes all match (one vote is enough) ÷ judged tries"),
        gettext_noop("judged"),
    ),
    "step_unanimous_share": Definition(
        gettext_noop("Steps with unanimous votes"),
        gettext_noop("steps whose votes all match ÷ steps with two votes or more"),
        # Translators: after a number: the steps of agents that people judged
        gettext_noop("steps"),
    ),
    "criteria_met_share": Definition(
        gettext_noop("Criteria met"),
        gettext_noop("criteria that are met ÷ decided criteria with positive points"),
        # Translators: after a number: criteria for the answers of models
        gettext_noop("criteria"),
    ),
    "criteria_score": Definition(
        gettext_noop("Mean score by criteria"),
        gettext_noop("scores of answers ÷ answers whose criteria decide a score"),
        # Translators: after a number: answers of models
        gettext_noop("answers"),
    ),
    "criteria_unclear_share": Definition(
        gettext_noop("Unclear judgements of criteria"),
        gettext_noop("judgements of criteria without a clear answer ÷ all judgements of criteria"),
        gettext_noop("judgements"),
    ),
    "criteria_author_share": Definition(
        gettext_noop("Agreement with authors on criteria"),
        gettext_noop("decided criteria where judges agree with the author ÷ decided criteria"),
        gettext_noop("criteria"),
    ),
    "human_accuracy": Definition(
        gettext_noop("Agreement between judges"),
        gettext_noop(
            "votes that match most of the other votes ÷ votes where the others have a clear "
            "favourite"
        ),
        # Translators: after a number: votes whose example has enough other votes to compare with
        gettext_noop("comparable votes"),
    ),
    "model_accuracy": Definition(
        gettext_noop("Agreement of the model with judges"),
        gettext_noop(
            "votes where the model matches most of the other votes ÷ votes where the others "
            "have a clear favourite"
        ),
        # Translators: after a number: votes whose example has enough other votes to compare with
        gettext_noop("comparable votes"),
    ),
    "human_model_gap": Definition(
        gettext_noop("Gap between people and model"),
        gettext_noop(
            "agreement between judges − agreement of the model with judges, on the same votes"
        ),
        # Translators: after a number: votes whose example has enough other votes to compare with
        gettext_noop("comparable votes"),
        "points",
    ),
}
