"""Whether a bonus by information buys more information for the same money than a flat one.

Simulated authors choose between tricks, which take little time and on which people disagree, and
clear examples. They choose what earns most per minute, and judges vote. See docs/campaigns.md,
"Bonus by information".
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import add_origin, build_parser  # noqa: E402
from dynabench.campaigns.rules.information import (  # noqa: E402
    AMBIGUITY_WEIGHT,
    CatchFacts,
    compute_information,
)

BONUS = 100
VOTES = 5
MODELS = 3
EXAMPLES = 20
"""That an author writes."""
CHOICE_SHARPNESS = 4.0
"""How strongly authors prefer what earns more: the logit of the ratio of earnings per minute."""
KINDS = {
    # minutes, chance that a model is wrong, chance that a person gives the right answer
    "trick": (2.0, 0.75, 0.72),
    "clear": (3.5, 0.6, 0.96),
}


def write_example(random: np.random.Generator, kind: str, skill: float) -> CatchFacts | None:
    """Return what is known of an example that is a confirmed catch; None if it is none."""
    _minutes, wrong_chance, right_chance = KINDS[kind]
    wrong_models = int(random.binomial(MODELS, min(0.95, wrong_chance * skill)))
    right_votes = int(random.binomial(VOTES, right_chance))
    # The first model is the one to fool, and most judges must agree with the author.
    if not wrong_models or right_votes * 2 <= VOTES:
        return None
    answer_votes = [right_votes, VOTES - right_votes]
    return CatchFacts(right_votes, VOTES, wrong_models, MODELS, answer_votes)


def compute_true_information(kind: str, skill: float) -> float:
    """Return the information of such catches if endlessly many people and models answered.

    What is bought is this, and not the few votes by which it is paid.
    """
    _minutes, wrong_chance, right_chance = KINDS[kind]
    disagreement = 1 - right_chance**2 - (1 - right_chance) ** 2
    return right_chance * min(0.95, wrong_chance * skill) - AMBIGUITY_WEIGHT * disagreement


def compute_pay(facts: CatchFacts, is_by_information: bool) -> int:
    return round(BONUS * compute_information(facts)) if is_by_information else BONUS


def measure_earnings(random: np.random.Generator, is_by_information: bool) -> dict[str, float]:
    """Return what an author of middle skill earns per minute with each kind."""
    earnings = {}
    for kind, (minutes, _wrong, _right) in KINDS.items():
        pay = 0
        for _ in range(2000):
            facts = write_example(random, kind, 1.0)
            pay += 0 if facts is None else compute_pay(facts, is_by_information)
        earnings[kind] = pay / 2000 / minutes
    return earnings


def simulate_campaign(
    random: np.random.Generator, authors: int, is_by_information: bool, *, authors_learn: bool
) -> dict[str, float]:
    """Return information per 100 units of money, the share of clear examples, and catches."""
    earnings = measure_earnings(random, is_by_information)
    ratio = (earnings["clear"] - earnings["trick"]) / max(earnings.values())
    # Nobody knows exactly what pays, so a small difference moves few authors.
    clear_share = 1 / (1 + np.exp(-CHOICE_SHARPNESS * ratio)) if authors_learn else 0.5
    information = money = catches = clear = 0.0
    for _ in range(authors):
        skill = random.uniform(0.7, 1.1)
        for _ in range(EXAMPLES):
            kind = "clear" if random.random() < clear_share else "trick"
            facts = write_example(random, kind, skill)
            clear += kind == "clear"
            if facts is not None:
                catches += 1
                money += compute_pay(facts, is_by_information)
                information += compute_true_information(kind, skill)
    return {
        "information per 100": 100 * information / money,
        "information per catch": information / catches,
        "clear share": clear / (authors * EXAMPLES),
    }


def main() -> None:
    args = build_parser(__doc__, quick="200 authors").parse_args()
    authors = 10 if args.smoke else 200 if args.quick else 2000
    results: dict[str, Any] = {"authors": authors}
    for name, is_by_information in (("flat", False), ("by information", True)):
        random = np.random.default_rng(3)
        numbers = simulate_campaign(random, authors, is_by_information, authors_learn=True)
        results |= {f"{name}: {key}": value for key, value in numbers.items()}
        numbers = simulate_campaign(random, authors, is_by_information, authors_learn=False)
        results[f"{name}: information per 100, if nobody adapts"] = numbers["information per 100"]
    ratios = {
        "information / money, by information / flat": (
            results["by information: information per 100"] / results["flat: information per 100"]
        )
    }
    if args.json:
        print(json.dumps(add_origin({**results, "ratios": ratios}, "numpy"), indent=2))
        return
    for name, value in {**results, **ratios}.items():
        print(f"{name:52} {value:8.3f}")


if __name__ == "__main__":
    main()
