"""How often the interval of the share of machine-written text contains the true share.

    python -m bench.machine_share            # 2,000 campaigns at each true share, some minutes
    python -m bench.machine_share --quick    # 300

Campaigns and a labelled study are simulated: people who differ in how often they use a model, and
in how often their own texts look like a model's. The share is another one under each condition.
Nothing is stored. docs/statistics.md says how the share is estimated.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from annotation.rules.machine_share import (  # noqa: E402
    LabelledCounts,
    SignalledText,
    count_by_author,
    estimate_machine_share,
)
from bench.command import add_origin, build_parser  # noqa: E402

TRUE_SHARES = (0.1, 0.2, 0.35, 0.6)
AUTHORS, TEXTS = 80, 10
STUDY_AUTHORS, STUDY_TEXTS = 80, 16
# By condition: the rates at which each signal fires in texts by machines and by people, and by how
# much the condition lowers the share of machine texts.
CONDITIONS: dict[str, tuple[tuple[tuple[float, float], ...], float]] = {
    "none": (((0.6, 0.12), (0.25, 0.06)), 1.0),
    "paste_off": (((0.45, 0.05), (0.3, 0.06)), 0.6),
    "ask": (((0.6, 0.12), (0.25, 0.06), (0.5, 0.02)), 0.9),
    "hidden": (((0.6, 0.12), (0.25, 0.06), (0.35, 0.002)), 1.0),
}
USELESS_CONDITIONS: dict[str, tuple[tuple[tuple[float, float], ...], float]] = {
    "none": (((0.3, 0.3),), 1.0)
}
USER_CONCENTRATION = 1.5
"""Of the Beta distribution of people's habit of using a model: most use it never or often."""
LOOK_SPREAD = 0.5
"""Standard deviation, in log-odds, of how often a person's texts fire signals."""


def draw_scores(
    generator: np.random.Generator, rates: Sequence[tuple[float, float]], is_machine: bool,
    look: float,
) -> float:  # fmt: skip
    """Return the share of a text's signals that fire. look: the author's shift in log-odds."""
    fired = []
    for machine_rate, person_rate in rates:
        rate = machine_rate if is_machine else person_rate
        odds = rate / (1 - rate) * np.exp(look)
        fired.append(generator.random() < odds / (1 + odds))
    return sum(fired) / len(fired)


def draw_campaign(
    generator: np.random.Generator, true_share: float, conditions: Any = CONDITIONS,
    authors: int = AUTHORS,
) -> list[SignalledText]:  # fmt: skip
    """Return the texts of a campaign in which `true_share` of all texts are by machines."""
    names = list(conditions)
    # So that the shares under the conditions have the true share as their mean.
    scale = true_share / np.mean([lowered for _rates, lowered in conditions.values()])
    texts = []
    for author in range(authors):
        habit = generator.beta(
            scale * USER_CONCENTRATION, max(1 - scale, 1e-9) * USER_CONCENTRATION
        )
        look = generator.normal(0, LOOK_SPREAD)
        for _ in range(1 + generator.poisson(TEXTS - 1)):
            name = names[generator.integers(len(names))]
            rates, lowered = conditions[name]
            is_machine = generator.random() < habit * lowered
            texts.append(
                SignalledText(author, name, draw_scores(generator, rates, is_machine, look))
            )
    return texts


def draw_study(
    generator: np.random.Generator, conditions: Any = CONDITIONS, authors: int = STUDY_AUTHORS
) -> list[LabelledCounts]:
    """Return the counts of a labelled study whose authors are of the same kind."""
    names, study = list(conditions), []
    for author in range(authors):
        look = generator.normal(0, LOOK_SPREAD)
        texts: tuple[list[SignalledText], list[SignalledText]] = ([], [])
        for _ in range(STUDY_TEXTS):
            is_machine = generator.random() < 0.5
            name = names[generator.integers(len(names))]
            score = draw_scores(generator, conditions[name][0], is_machine, look)
            texts[is_machine].append(SignalledText(author, name, score))
        person, machine = (next(iter(count_by_author(part)), {}) for part in texts)
        study.append(LabelledCounts(machine, person))
    return study


def simulate(true_share: float, campaigns: int, seed: int) -> dict[str, Any]:
    """Return how often the interval contains the true share, and how wide it is."""
    generator = np.random.default_rng(seed)
    covered, widths, errors, unstated = 0, [], [], 0
    for number in range(campaigns):
        found = estimate_machine_share(
            count_by_author(draw_campaign(generator, true_share)),
            draw_study(generator),
            seed=number,
        )
        if found.low is None or found.high is None or found.share is None:
            unstated += 1
            continue
        covered += found.low <= true_share <= found.high
        widths.append(found.high - found.low)
        errors.append(found.share - true_share)
    return {
        "true_share": true_share,
        "campaigns": campaigns,
        "unstated": unstated,
        "coverage95": round(covered / max(1, campaigns - unstated), 4),
        "median_width": round(float(np.median(widths)), 4),
        "bias": round(float(np.mean(errors)), 4),
    }


def simulate_useless(campaigns: int, seed: int) -> dict[str, Any]:
    """Return how often signals of no use lead to a stated share. It should be never."""
    generator = np.random.default_rng(seed)
    stated = 0
    for number in range(campaigns):
        found = estimate_machine_share(
            count_by_author(draw_campaign(generator, 0.2, USELESS_CONDITIONS)),
            draw_study(generator, USELESS_CONDITIONS),
            seed=number,
        )
        stated += found.share is not None
    return {"campaigns": campaigns, "stated": stated}


def run_all(campaigns: int) -> Iterator[dict[str, Any]]:
    """Yield the figures at each true share."""
    for number, true_share in enumerate(TRUE_SHARES):
        yield simulate(true_share, campaigns, seed=number)


def main() -> None:
    parser = build_parser(__doc__, quick="300 campaigns at each true share")
    args = parser.parse_args()
    campaigns = 3 if args.smoke else 300 if args.quick else 2000
    shares = []
    for figures in run_all(campaigns):
        shares.append(figures)
        if not args.json:
            print(json.dumps(figures), flush=True)
    useless = simulate_useless(campaigns, seed=99)
    ratios = {
        f"share {one['true_share']}: distance of coverage from 95 %": round(
            abs(one["coverage95"] - 0.95), 4
        )
        for one in shares
    }
    if args.json:
        results = {"ratios": ratios, "shares": shares, "useless_signals": useless}
        print(json.dumps(add_origin(results, "numpy", lower=ratios), indent=1))
    else:
        print(json.dumps({"useless_signals": useless}))


if __name__ == "__main__":
    main()
