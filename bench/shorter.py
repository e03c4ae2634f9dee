"""How many questions a short evaluation saves, and whether its intervals hold.

Each model of two matrices of answers is evaluated as if it were new: the questions' properties come
from models of other families alone. See bench/README.md.
"""

import json
import os
import sys
import time
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser  # noqa: E402
from evaluation.scoring.ruler.matrices import AnswerMatrix, read_matrix  # noqa: E402
from evaluation.scoring.ruler.response_model import MIN_MODELS, fit_items  # noqa: E402
from evaluation.scoring.shorter.drawing import (  # noqa: E402
    QuestionPriors,
    choose_batch_size,
    draw_batch,
    make_priors,
    predict_answers,
)
from evaluation.scoring.shorter.estimate import (  # noqa: E402
    AskedQuestion,
    ShareEstimate,
    estimate_share,
    find_stop_reason,
)

MATRICES = ("boolq", "adversarial-nli")
HALF_WIDTHS = (0.05, 0.03)
NORMAL_QUANTILE = 1.959964


@dataclass(frozen=True)
class Trial:
    """One short evaluation of a model whose answers to all questions are known."""

    asked_count: int
    is_held: bool
    error: float
    sample_count: int
    """The simple random sample with the same interval, if its variance were known beforehand."""


def evaluate(
    answers: np.ndarray, priors: QuestionPriors, half_width: float, seed: int
) -> tuple[ShareEstimate, list[int]]:
    """Return the estimate of a short evaluation and the questions that it asked."""
    size = len(answers)
    asked: list[AskedQuestion] = []
    positions: list[int] = []
    is_asked, exposures = np.zeros(size, dtype=bool), np.zeros(size, dtype=int)
    while True:
        estimate = estimate_share(size, asked)
        if estimate and find_stop_reason(estimate, len(asked), size, half_width):
            return estimate, positions
        predictions = predict_answers(priors, positions, [bool(answers[p]) for p in positions])
        ratio = estimate.half_width / half_width if estimate else 0.0
        count = choose_batch_size(len(asked), size, ratio)
        random = np.random.default_rng([seed, len(asked)])
        for drawn in draw_batch(predictions, is_asked, exposures, count, random):
            is_asked[drawn.position] = True
            positions.append(drawn.position)
            asked.append(
                AskedQuestion(
                    drawn.chance, drawn.prediction, drawn.rest, bool(answers[drawn.position])
                )
            )


def learn_priors(is_right: np.ndarray) -> QuestionPriors:
    """Return what the answers of other models say about the questions."""
    items = fit_items(is_right, np.ones_like(is_right))
    difficulties, _ = items.compute_difficulties()

    def name_unknown(values: np.ndarray) -> list[float | None]:
        return [
            None if np.isnan(value) or not stated else float(value)
            for value, stated in zip(values, items.is_stated, strict=True)
        ]

    return make_priors(
        is_right.shape[1],
        [float(share) for share in is_right.mean(axis=0)],
        name_unknown(difficulties),
        name_unknown(items.discriminations),
    )


def count_simple_sample(share: float, size: int, half_width: float) -> int:
    """Return the size of a simple random sample with this interval: Cochran 1977, 4.4."""
    count = share * (1 - share) * (NORMAL_QUANTILE / half_width) ** 2
    return ceil(count / (1 + count / size))


def try_matrix(
    matrix: AnswerMatrix, half_width: float, *, repeats: int, is_informed: bool, stride: int
) -> list[Trial]:
    """Evaluate every `stride`th model, each from the answers of the other families."""
    families = np.array([name.rsplit("_", 1)[0] for name in matrix.models])
    size, trials = len(matrix.items), []
    for family in sorted(set(families)):
        others = matrix.is_right[families != family]
        priors = learn_priors(others) if is_informed else make_priors(size)
        for place in np.flatnonzero(families == family)[::stride]:
            answers = matrix.is_right[place]
            share = float(answers.mean())
            for repeat in range(repeats):
                # A seed of its own for each, or all models would be asked the same questions.
                seed = int(place) * 1000 + repeat
                estimate, positions = evaluate(answers, priors, half_width, seed)
                trials.append(
                    Trial(
                        len(positions),
                        estimate.low <= share <= estimate.high,
                        estimate.value - share,
                        count_simple_sample(share, size, half_width),
                    )
                )
    return trials


def summarise(trials: list[Trial]) -> dict[str, float]:
    """Return how often intervals held, how many questions were asked, and the errors."""
    asked, needed = (
        fmean(trial.asked_count for trial in trials),
        fmean(trial.sample_count for trial in trials),
    )
    return {
        "coverage": fmean(trial.is_held for trial in trials),
        "questions": asked,
        "simple sample": needed,
        "questions / simple sample": asked / needed,
        "error points": 100 * sqrt(fmean(trial.error**2 for trial in trials)),
        "bias points": 100 * fmean(trial.error for trial in trials),
        "trials": len(trials),
    }


def simulate_matrix() -> AnswerMatrix:
    """Return answers of a few simulated models, where there are no data, for the smoke form."""
    random = np.random.default_rng(1)
    abilities = random.normal(0, 1, (MIN_MODELS + 10, 1))
    is_right = random.random((len(abilities), 80)) < 1 / (
        1 + np.exp(random.normal(0, 1, 80) - abilities)
    )
    models = tuple(f"m{number // 5}_{number}" for number in range(len(abilities)))
    return AnswerMatrix(models, tuple(map(str, range(80))), is_right)


def main() -> None:
    args = build_parser(__doc__, quick="one evaluation of every fifth model").parse_args()
    folder = Path(os.environ.get("DYNABENCH_DATA", "")) / "responses"
    paths = {name: folder / f"{name}.csv.gz" for name in MATRICES}
    if args.smoke:
        matrices = {"simulated": simulate_matrix()}
    elif all(path.exists() for path in paths.values()):
        matrices = {name: read_matrix(path) for name, path in paths.items()}
    else:
        print("Set DYNABENCH_DATA to a folder with responses/*.csv.gz.", file=sys.stderr)
        sys.exit(EXIT_UNAVAILABLE)
    repeats, stride = (1, 5) if args.quick or args.smoke else (5, 1)
    started_at = time.process_time()
    results: dict[str, Any] = {}
    ratios = {}
    for name, matrix in matrices.items():
        for half_width in HALF_WIDTHS:
            for is_informed in (True, False):
                trials = try_matrix(
                    matrix, half_width, repeats=repeats, is_informed=is_informed, stride=stride
                )
                known = "known questions" if is_informed else "new questions"
                key = f"{name}, {100 * half_width:g} points, {known}"
                results[key] = summarise(trials)
                ratios[f"{key}: questions / simple sample"] = results[key][
                    "questions / simple sample"
                ]
    results["seconds"] = time.process_time() - started_at
    if args.json:
        print(json.dumps(add_origin(results | {"ratios": ratios}, "numpy", lower=ratios), indent=2))
        return
    for name, values in results.items():
        if isinstance(values, dict):
            print(name)
            for label, value in values.items():
                print(f"  {label:26} {value:9.3f}")


if __name__ == "__main__":
    main()
