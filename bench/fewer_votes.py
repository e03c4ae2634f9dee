"""How many votes a judge model saves, and whether the intervals hold, on data with all votes.

    python -m bench.fewer_votes            # 500 samples of each case, some minutes
    python -m bench.fewer_votes --quick    # 60
    python -m bench.fewer_votes --json     # print one object

The data (DYNABENCH_DATA, else ../shared/data) is other people's: DynaSent with five votes a row,
and a sample of ANLI with its verifiers. For each sample, whole authors are drawn with replacement
as a new round, a judge model is simulated, and people judge a part. The estimate is compared with
the share in all rows. Figures alone leave the program. docs/statistics.md has the formula.
"""

import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser  # noqa: E402
from validation.consensus.vote_draws import compute_draw_chance  # noqa: E402
from validation.rates.assisted_rates import (  # noqa: E402
    AssistedExample,
    AssistedRate,
    compute_assisted_rate,
)

DATA = Path(os.environ.get("DYNABENCH_DATA") or ROOT.parent / "shared" / "data")
FILES = {
    "dynasent r1": ("dynasent-r1-dev.jsonl.gz", "dynasent-r1-test.jsonl.gz"),
    "dynasent r2": ("dynasent-r2-dev.jsonl.gz", "dynasent-r2-test.jsonl.gz"),
    "anli": ("anli-dev-sample.jsonl.gz",),
}
MAX_ROWS = 1500
"""The most rows of a round, so that each takes about as long."""
ACCURACIES = (0.6, 0.75, 0.9)
KAPPA = 0.6
"""The agreement of the judge whose saving is compared with theory."""
EVEN_CHANCE = 0.2
"""The judge answers five items for each that people judge."""
Chooser = Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Row(NamedTuple):
    """One row: its author, or itself if unknown, and whether people found what is counted."""

    author: str
    is_found: bool


def read_rows(names: Sequence[str]) -> list[Row]:
    """Return the rows of files with votes."""
    rows = []
    for name in names:
        with gzip.open(DATA / name, "rt") as lines:
            for line in lines:
                row = json.loads(line)
                rows.append(Row(row["author"] or row["uid"], is_model_error(row)))
    return rows


def is_model_error(row: dict[str, Any]) -> bool:
    """Return whether people's votes say that the model was wrong.

    With the author's label known, the first two verifiers must both give it. Otherwise more than
    half of the votes must be for one label, and the model's must be another one.
    """
    labels = [vote["label"] for vote in row["validations"]]
    if row["author_label"]:
        return labels[:2] == [row["author_label"]] * 2
    label, count = Counter(labels).most_common(1)[0]
    return count > len(labels) / 2 and label != row["model_prediction"]["label"]


def draw_round(generator: np.random.Generator, rows: Sequence[Row]) -> list[Row]:
    """Return a new round: whole authors, drawn with replacement. Each draw is another author."""
    rows_by_author: dict[str, list[Row]] = {}
    for row in rows:
        rows_by_author.setdefault(row.author, []).append(row)
    authors = list(rows_by_author)
    share = min(1.0, MAX_ROWS / len(rows))
    picks = generator.integers(len(authors), size=round(share * len(authors)))
    return [
        Row(f"{place}", row.is_found)
        for place, pick in enumerate(picks)
        for row in rows_by_author[authors[pick]]
    ]


def make_plain_judge(accuracy: float) -> Chooser:
    """Return a judge that says yes or no, with an even chance of being drawn for all items."""

    def answer(generator: np.random.Generator, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        is_right = generator.random(len(found)) < accuracy
        return np.where(is_right, found, 1 - found), np.full(len(found), EVEN_CHANCE)

    return answer


def make_doubting_judge(accuracy: float) -> Chooser:
    """Return a judge that knows how sure it is; people are asked by the product's rule."""
    spread = min(1 - accuracy, accuracy - 0.5)

    def answer(generator: np.random.Generator, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sureness = generator.uniform(accuracy - spread, accuracy + spread, len(found))
        is_right = generator.random(len(found)) < sureness
        answers = np.where(is_right, found, 1 - found)
        scores = np.where(answers == 1, sureness, 1 - sureness)
        return scores, np.array([compute_draw_chance(score, 0.1) for score in scores])

    return answer


def find_accuracy(kappa: float, share: float) -> float:
    """Return the accuracy on both classes at which a judge's κ with people has this value."""
    low, high = 0.5, 1.0
    for _ in range(50):
        accuracy = (low + high) / 2
        says_yes = share * accuracy + (1 - share) * (1 - accuracy)
        by_chance = share * says_yes + (1 - share) * (1 - says_yes)
        if (accuracy - by_chance) / (1 - by_chance) < kappa:
            low = accuracy
        else:
            high = accuracy
    return low


def estimate(
    authors: Sequence[str], scores: np.ndarray, found: np.ndarray, chances: np.ndarray,
    is_drawn: np.ndarray,
) -> AssistedRate:  # fmt: skip
    """Return the estimate of the share from the drawn items."""
    rate = compute_assisted_rate(
        [
            AssistedExample(author, score, people if drawn else None, chance)
            for author, score, people, chance, drawn in zip(
                authors, scores.tolist(), found.tolist(), chances.tolist(), is_drawn, strict=True
            )
        ]
    )
    assert rate is not None  # hundreds are judged
    return rate


def simulate(rows: Sequence[Row], judge: Chooser, samples: int, seed: int) -> dict[str, Any]:
    """Return how often the interval contains the truth, and how many votes the judge saves.

    Without the judge, as many items are judged, and then twice as many, each with an even chance.
    The variance is a + b ÷ votes, where a is what even all votes leave. Two sizes give a and b, and
    so the number of votes for the width that the judge gives.
    """
    truth = sum(row.is_found for row in rows) / len(rows)
    generator = np.random.default_rng(seed)
    covered, errors, shares = 0, [], []
    variances: dict[str, list[float]] = {"judge": [], "plain": [], "plain, twice": []}
    for _ in range(samples):
        drawn_rows = draw_round(generator, rows)
        authors = [row.author for row in drawn_rows]
        found = np.array([float(row.is_found) for row in drawn_rows])
        scores, chances = judge(generator, found)
        # The same numbers for all three, so that they differ by the method and not by luck.
        numbers = generator.random(len(found))
        is_drawn = numbers < chances
        rate = estimate(authors, scores, found, chances, is_drawn)
        covered += rate.low <= truth <= rate.high
        errors.append(rate.value - truth)
        shares.append(float(np.mean(is_drawn)))
        # By the standard errors, because an interval may end at 0 or 1.
        variances["judge"].append(rate.standard_error**2)
        for name, factor in (("plain", 0.5), ("plain, twice", 1.0)):
            chance = np.full(len(found), min(1.0, 2 * float(np.mean(chances))) * factor)
            plain = estimate(authors, np.full(len(found), 0.5), found, chance, numbers < chance)
            variances[name].append(plain.standard_error**2)
    with_judge, small, large = (float(np.mean(values)) for values in variances.values())
    used, small_size = float(np.mean(shares)), min(1.0, 2 * float(np.mean(shares))) / 2
    slope = (small - large) / (1 / small_size - 1 / (2 * small_size))
    needed = slope / max(1e-12, with_judge - (small - slope / small_size))
    return {
        "samples": samples,
        "truth": round(truth, 4),
        "judged_share": round(used, 3),
        "coverage95": round(covered / samples, 4),
        "bias": round(float(np.mean(errors)), 4),
        "votes_saved": round(1 - used / needed, 4),
    }


def read_all_rows() -> dict[str, list[Row]]:
    """Return the rows of each round of FILES."""
    return {name: read_rows(files) for name, files in FILES.items()}


def make_rows() -> dict[str, list[Row]]:
    """Return rows of nobody, for the smoke form."""
    return {"made": [Row(str(number % 40), number % 3 > 0) for number in range(400)]}


def run_all(rounds: Mapping[str, Sequence[Row]], samples: int) -> Iterator[dict[str, Any]]:
    """Yield the figures of each round with each judge."""
    seed = 0
    for name, rows in rounds.items():
        share = sum(row.is_found for row in rows) / len(rows)
        judges = {f"accuracy {accuracy}": make_plain_judge(accuracy) for accuracy in ACCURACIES}
        judges |= {
            f"accuracy {accuracy}, knows its doubt": make_doubting_judge(accuracy)
            for accuracy in ACCURACIES
        }
        judges[f"kappa {KAPPA}"] = make_plain_judge(find_accuracy(KAPPA, share))
        judges["guesses"] = make_plain_judge(0.5)
        for judge_name, judge in judges.items():
            seed += 1
            yield {"data": name, "judge": judge_name, **simulate(rows, judge, samples, seed)}


def main() -> None:
    parser = build_parser(__doc__, quick="60 samples of each case")
    args = parser.parse_args()
    if not args.smoke and not all(
        (DATA / name).exists() for names in FILES.values() for name in names
    ):
        print(f"The data is missing in {DATA}; set DYNABENCH_DATA.", file=sys.stderr)
        sys.exit(EXIT_UNAVAILABLE)
    samples = 2 if args.smoke else 60 if args.quick else 500
    cases = []
    for figures in run_all(make_rows() if args.smoke else read_all_rows(), samples):
        cases.append(figures)
        if not args.json:
            print(json.dumps(figures), flush=True)
    coverage = float(np.mean([case["coverage95"] for case in cases]))
    saved = [case["votes_saved"] for case in cases if case["judge"] == f"kappa {KAPPA}"]
    lost = [-case["votes_saved"] for case in cases if case["judge"] == "guesses"]
    ratios = {
        "distance of mean coverage from 95 %": round(abs(coverage - 0.95), 4),
        f"least share of votes saved at kappa {KAPPA}": min(saved),
        "most votes that a useless judge costs": max(lost),
    }
    lower = {name for name in ratios if "saved" not in name}
    if args.json:
        results = {"ratios": ratios, "cases": cases}
        print(json.dumps(add_origin(results, "numpy", lower=lower), indent=1))
    else:
        print(json.dumps(ratios))


if __name__ == "__main__":
    main()
