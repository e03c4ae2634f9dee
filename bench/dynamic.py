"""Whether rounds that look for errors make better models than rounds of texts chosen at random.

    python -m bench.dynamic                          # ten repeats, some minutes
    python -m bench.dynamic --figure dynamic.svg     # and a plot
    python -m bench.dynamic --quick                  # sentiment, fewer texts and repeats

From the starters for sentiment and NLI, four arms run three rounds each over real texts that
others wrote: texts at random, texts that fool the round's model, texts of its weak spots
(`dynabench.failures`), and texts that fooled it out of five that a helper preferred. Each round
adds as many texts to an arm's training data as in the other arms, and its model replaces the
last one. Then all answer sets that no arm saw.

Retraining fits the starter's last layer anew, and keeps its encoder: so ten repeats of all arms
take minutes. A retraining of the whole model may gain more, in any arm. The texts need
DYNABENCH_DATA, are other people's and no part of this project. See bench/README.md.
"""

import gzip
import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import t as student

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser  # noqa: E402
from bench.confidence import DATA  # noqa: E402
from core.text.words import split_words  # noqa: E402
from dynabench.failures.rules.records import Try  # noqa: E402
from dynabench.failures.rules.slices import find_slices  # noqa: E402
from evaluation.seeds import read_seed_rows, split_held_out  # noqa: E402
from evaluation.training.shipped import find_shipped_folder, unpack_starter  # noqa: E402

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]
Row = dict[str, Any]
ROUNDS = 3
HELPER_CHOICE = 5
"""From how many texts a helper proposes the one of which the model is least sure."""
AUTHORS = 60
"""Texts of reviews and photographs have no authors here; slices are checked between these parts."""
STAY = 3.0
"""How strongly a new last layer stays with the former one, in texts: a ridge around its weights."""
CONFIDENCE = 0.95
BATCH = 32
SEEDS_PER_TEXT = 2
SEEDS, POOL = "seeds", "pool"
ROLES = ("other", "people", "other", "chosen")
"""Of the arms' lines in the plot."""


@dataclass(frozen=True)
class Size:
    """How much is drawn. texts: what each round adds. tries: what a round looks at to find it."""

    tasks: tuple[str, ...]
    pool: int
    tests: int
    texts: int
    tries: int
    repeats: int


WHOLE = Size(("sentiment", "nli"), 8400, 2000, 150, 1200, 10)
QUICK = Size(("sentiment",), 1200, 250, 60, 500, 4)
SMOKE = Size(("sentiment",), 40, 10, 4, 30, 2)


@dataclass(frozen=True)
class Texts:
    """Texts of one origin as the starter's encoder sees them. vectors: [text, feature]."""

    words: list[frozenset[str]]
    vectors: Matrix
    labels: Rows


@dataclass(frozen=True)
class Head:
    """The last layer of a classifier. weights: [label, feature, and last the bias]."""

    weights: Matrix

    def compute_chances(self, vectors: Matrix) -> Matrix:
        """Return the probability of each label, [text, label]."""
        scores = _add_ones(vectors) @ self.weights.T
        scores -= scores.max(axis=1, keepdims=True)
        chances: Matrix = np.exp(scores)
        return chances / chances.sum(axis=1, keepdims=True)

    def find_errors(self, texts: Texts) -> NDArray[np.bool_]:
        """Return which texts get another label than people's."""
        wrong: NDArray[np.bool_] = self.compute_chances(texts.vectors).argmax(1) != texts.labels
        return wrong


def _add_ones(vectors: Matrix) -> Matrix:
    return np.hstack([vectors, np.ones((len(vectors), 1))])


def fit_head(former: Head, vectors: Matrix, labels: Rows) -> Head:
    """Return the head that fits these texts, near the former one (maximum a posteriori)."""
    inputs, shape = _add_ones(vectors), former.weights.shape
    targets = np.eye(shape[0])[labels]

    def compute_loss(flat: Matrix) -> tuple[float, Matrix]:
        weights = flat.reshape(shape)
        chances = Head(weights).compute_chances(vectors)
        change = weights - former.weights
        fit = -np.log(np.maximum((chances * targets).sum(1), 1e-12)).sum()
        gradient = (chances - targets).T @ inputs + 2 * STAY * change
        return float(fit + STAY * (change**2).sum()), gradient.ravel()

    found = minimize(compute_loss, former.weights.ravel(), jac=True, method="L-BFGS-B")
    return Head(found.x.reshape(shape))


Choose = Callable[[Head, Texts, Rows, int, int, np.random.Generator], Rows]
"""Chooses up to so many of the free texts after so many tries."""


def choose_at_random(
    _head: Head, _pool: Texts, free: Rows, count: int, _tries: int, chance: np.random.Generator
) -> Rows:
    """Return texts that nobody looked for."""
    return chance.permutation(free)[:count]


def choose_by_fooling(
    head: Head, pool: Texts, free: Rows, count: int, tries: int, chance: np.random.Generator
) -> Rows:
    """Return the first of the tries that fool the model; others are added where those are few."""
    tried = chance.permutation(free)[:tries]
    return _put_errors_first(head, pool, tried)[:count]


def choose_by_slices(
    head: Head, pool: Texts, free: Rows, count: int, tries: int, chance: np.random.Generator
) -> Rows:
    """Return texts of the model's weak spots, whether they fool it or not.

    Half of the tries are searched; the other texts come from all free ones, by the words of the
    slices. Without a slice it is a choice by fooling.
    """
    looked_at = chance.permutation(free)[: tries // 2]
    wrong = head.find_errors(pool)
    found = find_slices(
        Try(int(row), number % AUTHORS, pool.words[row], bool(wrong[row]))
        for number, row in enumerate(looked_at)
    )
    marks = frozenset(word for one in found.slices for word in one.words)
    if not marks:
        return choose_by_fooling(head, pool, free, count, tries, chance)
    shuffled = chance.permutation(free)
    marked_words = np.array([len(pool.words[row] & marks) for row in shuffled])
    return shuffled[np.argsort(-marked_words, kind="stable")][:count]


def choose_by_helped_people(
    head: Head, pool: Texts, free: Rows, count: int, tries: int, chance: np.random.Generator
) -> Rows:
    """Return tries that fool the model, each the one of five texts that a helper proposes."""
    chances = head.compute_chances(pool.vectors)
    certainty = chances[np.arange(len(chances)), pool.labels]
    tried = [
        min(choice, key=lambda row: certainty[row])
        for choice in _split(chance.permutation(free)[: tries * HELPER_CHOICE], HELPER_CHOICE)
    ]
    return _put_errors_first(head, pool, np.array(tried[:tries]))[:count]


def _split(rows: Sequence[int] | Rows, size: int) -> list[Any]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _put_errors_first(head: Head, pool: Texts, tried: Rows) -> Rows:
    wrong = head.find_errors(pool)[tried]
    return np.concatenate([tried[wrong], tried[~wrong]])


ARMS: Mapping[str, Choose] = {
    "random": choose_at_random,
    "fooling": choose_by_fooling,
    "slices": choose_by_slices,
    "helped people": choose_by_helped_people,
}


def run_arm(
    starter: Head,
    seed_texts: Texts,
    pool: Texts,
    tests: Mapping[str, Texts],
    choose: Choose,
    size: Size,
    repeat: int,
) -> Matrix:
    """Return the accuracies, [round, test]; first those of the starter."""
    chance = np.random.default_rng(repeat)
    # The same part of the pool for all arms of a repeat, so that their differences are paired.
    free = np.random.default_rng(repeat).permutation(len(pool.labels))
    free = free[: max(size.texts * ROUNDS, len(free) * 2 // 3)]
    head, taken = starter, np.array([], np.int64)
    accuracies = [_measure(starter, tests)]
    for _round in range(ROUNDS):
        chosen = choose(head, pool, free, size.texts, size.tries, chance)
        taken, free = np.concatenate([taken, chosen]), np.setdiff1d(free, chosen)
        # As owners train: the starter's seeds and all rounds so far, so that none is forgotten.
        vectors = np.concatenate([seed_texts.vectors, pool.vectors[taken]])
        head = fit_head(starter, vectors, np.concatenate([seed_texts.labels, pool.labels[taken]]))
        accuracies.append(_measure(head, tests))
    return np.array(accuracies)


def _measure(head: Head, tests: Mapping[str, Texts]) -> list[float]:
    return [float(1 - head.find_errors(texts).mean()) for texts in tests.values()]


def compute_intervals(values: Matrix) -> list[tuple[float, float, float]]:
    """Return the mean and the 95 % interval by Student's t of each column, [repeat, column]."""
    quantile = student.ppf((1 + CONFIDENCE) / 2, len(values) - 1)
    means = values.mean(axis=0)
    halves = quantile * values.std(axis=0, ddof=1) / sqrt(len(values))
    return [
        (float(mean), float(mean - half), float(mean + half))
        for mean, half in zip(means, halves, strict=True)
    ]


def measure_task(code: str, size: Size) -> dict[str, Any]:
    """Return each arm's accuracies by round, and how they differ from those of random texts."""
    with TemporaryDirectory() as scratch:
        unpack_starter(find_shipped_folder(code), Path(scratch))
        encoder = Encoder(Path(scratch))
    starter = encoder.read_head()
    tests = {name: encoder.encode(rows) for name, rows in read_sets(code, size).items()}
    seed_texts, pool = tests.pop(SEEDS), tests.pop(POOL)
    runs: dict[str, list[Matrix]] = {}
    for arm, choose in ARMS.items():
        repeats = range(size.repeats)
        runs[arm] = [
            run_arm(starter, seed_texts, pool, tests, choose, size, repeat) for repeat in repeats
        ]
    arms: dict[str, Any] = {}
    for arm, accuracies in runs.items():
        stacked = np.array(accuracies)
        gains = stacked[:, ROUNDS] - np.array(runs["random"])[:, ROUNDS]
        arms[arm] = {
            "mean": compute_intervals(stacked.mean(axis=2)),
            "mean gain": compute_intervals(gains.mean(axis=1, keepdims=True))[0],
            "tests": {
                name: {
                    "accuracy": compute_intervals(stacked[:, :, number]),
                    "gain": compute_intervals(gains[:, [number]])[0],
                }
                for number, name in enumerate(tests)
            },
        }
    return {"tests": {name: len(one.labels) for name, one in tests.items()}, "arms": arms}


def read_sets(code: str, size: Size) -> dict[str, list[Row]]:
    """Return the seeds, the pool, and each set that no arm sees, with people's labels."""
    seed_rows, held_out_rows = (
        [{name: text for name, text in row.items() if name != "group"} for row in part]
        for part in split_held_out(read_seed_rows(code))
    )
    if size is SMOKE:
        return {SEEDS: seed_rows[:20], POOL: seed_rows[20:60], "held out": held_out_rows[:10]}
    sets = {SEEDS: seed_rows[: SEEDS_PER_TEXT * size.texts]}
    for name, file in SETS[code].items():
        most = size.pool if name == POOL else size.tests
        sets[name] = list(read_rows(DATA / file, LABELS[code]))[:most]
    return sets


SETS = {
    "sentiment": {
        POOL: "dynasent-r1-dev.jsonl.gz",
        "sentences of reviews": "dynasent-r1-test.jsonl.gz",
        "written to fool": "dynasent-r2-test.jsonl.gz",
        "films": "dynasent-sst-dev.jsonl.gz",
    },
    "nli": {
        POOL: "train/nli-cad-train.jsonl.gz",
        "revised pairs": "train/nli-cad-test.jsonl.gz",
        "written to fool": "anli-dev-sample.jsonl.gz",
    },
}
LABELS = {
    "sentiment": ("positive", "negative", "neutral"),
    "nli": ("entailment", "neutral", "contradiction"),
}


def read_rows(path: Path, labels: Collection[str]) -> Iterator[Row]:
    """Yield a file's texts that have one of these labels."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in map(json.loads, file):
            label = line["metadata"].get("gold_label") or line["author_label"]
            if label in labels:
                context = {key: text for key, text in line["context"].items() if key == "premise"}
                yield {**context, **line["input"], "label": label}


class Encoder:
    """A starter below its last layer: it turns texts into that layer's inputs."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        settings = json.loads((folder / "dynabench.json").read_text())
        self._labels: list[str] = settings["labels"]
        self._max_length: int = settings["max_length"]
        self._model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._inputs: list[Matrix] = []
        self._model.classifier.register_forward_pre_hook(self._keep_inputs)

    def _keep_inputs(self, _layer: Any, arguments: Any) -> None:
        self._inputs.append(arguments[0].numpy().astype(np.float64))

    def read_head(self) -> Head:
        """Return the starter's own last layer."""
        layer = self._model.classifier
        bias = layer.bias.detach().numpy()[:, None]
        return Head(np.hstack([layer.weight.detach().numpy(), bias]).astype(np.float64))

    def encode(self, rows: Sequence[Mapping[str, str]]) -> Texts:
        """Return the last layer's inputs for rows, which have a label beside their texts."""
        import torch

        texts = [[text for key, text in row.items() if key != "label"] for row in rows]
        # Alike in length, so that little is padded.
        order = sorted(range(len(rows)), key=lambda row: sum(map(len, texts[row])))
        self._inputs.clear()
        with torch.inference_mode():
            for part in _split(order, BATCH):
                columns = [
                    list(column) for column in zip(*(texts[row] for row in part), strict=True)
                ]
                tokens = self._tokenizer(
                    *columns, padding=True, truncation=True, max_length=self._max_length,
                    return_tensors="pt",
                )  # fmt: skip
                self._model(**tokens)
        vectors = np.empty((len(rows), self._inputs[0].shape[1]))
        vectors[order] = np.concatenate(self._inputs)
        return Texts(
            [frozenset(split_words(" ".join(one).lower())) for one in texts],
            vectors,
            np.array([self._labels.index(row["label"]) for row in rows]),
        )


def draw(results: Mapping[str, Any]) -> str:
    """Return an SVG plot of the arms' mean accuracy over all sets by rounds, of the first task."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dynabench.settings")

    django.setup()
    from core.charts import Point
    from core.figures.figure import Figure, write_figure_svg
    from core.figures.plots import (
        PlotLine,
        build_line_legend,
        build_line_scene,
        compute_share_axis_top,
    )

    code, task = next(iter(results["tasks"].items()))
    lines = [
        PlotLine(
            arm.capitalize(),
            [Point(str(number), *one) for number, one in enumerate(task["arms"][arm]["mean"])],
            role,
        )
        for arm, role in zip(ARMS, ROLES, strict=True)
    ]
    last = {arm: task["arms"][arm]["mean"][ROUNDS][0] for arm in ARMS}
    best = max(last, key=lambda arm: last[arm])
    top = compute_share_axis_top([point for line in lines for point in line.points])
    figure = Figure(
        name="dynamic",
        title=f"After {ROUNDS} rounds, {best} leads with {last[best]:.1%} of the answers right",
        subtitle=f"Mean accuracy on sets that no arm saw, {code}, {results['repeats']} repeats",
        scene=build_line_scene(lines, top=top),
        legend=build_line_legend(lines),
        note="Bars: 95 % intervals over the repeats.",
    )
    return write_figure_svg(figure, "python -m bench.dynamic")


def print_table(results: Mapping[str, Any]) -> None:
    """Print the accuracies, and what each arm gained on random texts, in points with intervals."""
    for code, task in results["tasks"].items():
        print(f"\n{code}: accuracy of the starter and after {ROUNDS} rounds; gain on random texts")
        for arm, one in task["arms"].items():
            print(f"  {arm}: {describe(one['mean'], one['mean gain'])}")
            for test, count in task["tests"].items():
                found = one["tests"][test]
                print(f"    {test} (n={count}): {describe(found['accuracy'], found['gain'])}")


def describe(accuracy: Sequence[Sequence[float]], gain: Sequence[float]) -> str:
    """Return the first and the last accuracy, and the gain in points with its interval."""
    mean, low, high = (f"{100 * value:+.1f}" for value in gain)
    return f"{accuracy[0][0]:.3f} to {accuracy[-1][0]:.3f}, {mean} points [{low}, {high}]"


def main() -> None:
    parser = build_parser(__doc__, quick="sentiment, fewer texts and repeats")
    parser.add_argument("--figure", type=Path, help="draw the accuracies in this SVG file")
    args = parser.parse_args()
    size = SMOKE if args.smoke else QUICK if args.quick else WHOLE
    if size is not SMOKE and not (DATA / SETS["sentiment"][POOL]).exists():
        message = f"There is no DynaSent in {DATA}. Set DYNABENCH_DATA to its folder.\n"
        parser.exit(EXIT_UNAVAILABLE, message)
    tasks = {code: measure_task(code, size) for code in size.tasks}
    ratios = {}
    for code, task in tasks.items():
        last = {arm: one["mean"][ROUNDS][0] for arm, one in task["arms"].items()}
        for arm in ARMS.keys() - {"random"}:
            ratios[f"{code}, {arm} / random"] = last[arm] / last["random"]
    results = {"tasks": tasks, "repeats": size.repeats, "ratios": ratios}
    if args.figure:
        args.figure.write_text(draw(results))
    results = add_origin(results, "torch", "transformers", "numpy", "scipy")
    if args.json:
        print(json.dumps(results, indent=1))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
