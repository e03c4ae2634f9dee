"""Whether a round's data makes a stronger target: DynaSent round 2 with and without training on it.

    python bench/next_target.py            # some minutes on two cores
    python bench/next_target.py --quick    # less data and no seeds: a minute of processor time
    python bench/next_target.py --json     # one object

A is trained on the task's seeds and a part of round 1, B starts from A and is trained on the same
rows and on round 2's dev set too, as `manage.py train_target` would do it. Both then answer round
2's test set. The data (DYNABENCH_DATA, else ../shared/data) is other people's and no part of this
project. See bench/README.md.
"""

import gzip
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser  # noqa: E402
from evaluation.scoring.paired import compare_models  # noqa: E402
from evaluation.seeds import read_seed_rows, split_held_out  # noqa: E402
from evaluation.task_shape import build_trainable_shape, build_training_row  # noqa: E402
from evaluation.training.fine_tune import (  # noqa: E402
    Reading,
    TrainingOptions,
    answer_texts,
    split_dev_rows,
    train,
)
from evaluation.training.shipped import find_encoder  # noqa: E402
from evaluation.training.starters import STARTERS  # noqa: E402
from tasks.config.loading import load_config  # noqa: E402
from validation.consensus.consensus import Policy, Vote, decide_by_votes  # noqa: E402

DATA = Path(os.environ.get("DYNABENCH_DATA") or ROOT.parent / "shared" / "data")
CONFIG = load_config((ROOT / "tasks" / "official" / "sentiment" / "task.yaml").read_text())
SHAPE = build_trainable_shape(CONFIG)
MAJORITY_POLICY = Policy("at-least", 3)
ROUND_2_WEIGHT = 2.0
Rows = list[dict[str, Any]]


def read_released_rows(name: str) -> Rows:
    """The rows of a DynaSent file on whose label three people or more agree, by hash of the uid.

    Grouped by author; round 1 was sampled from reviews and has none.
    """
    with gzip.open(DATA / f"dynasent-{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    lines.sort(key=lambda line: hashlib.sha256(line["uid"].encode()).digest())
    return list(filter(None, map(build_row, lines)))


def build_row(line: dict[str, Any]) -> dict[str, Any] | None:
    votes = [Vote(label=vote["label"]) for vote in line["validations"]]
    decision = decide_by_votes(votes, MAJORITY_POLICY)
    row = build_training_row(SHAPE, line["input"], decision.label)
    return row and {**row, "group": line["author"] or line["uid"]}


def split_seeds(options: TrainingOptions) -> tuple[Rows, Rows]:
    """The shipped rows to train on, and those to stop by."""
    rest, _ = split_held_out(read_seed_rows("sentiment"))
    return split_dev_rows(rest, options)


def build_options(seed: int, epochs: int) -> TrainingOptions:
    """How A and B are trained."""
    options = STARTERS["sentiment"].options
    return replace(options, seed=seed, epochs=epochs, labels=SHAPE.labels)


def measure(*, quick: bool, seed: int, home: Path) -> dict[str, Any]:
    """Train A and B on DynaSent and compare them; texts are left out of the result."""
    options = build_options(seed, 2 if quick else 3)
    one = read_released_rows("r1-dev")[: 300 if quick else 1500]
    two = read_released_rows("r2-dev")[: 400 if quick else None]
    part, dev = split_dev_rows(one, options)
    if not quick:
        seed_part, seed_dev = split_seeds(options)
        part, dev = part + seed_part, dev + seed_dev
    tests = dict(list_tests(two, quick=quick))
    return train_and_compare(part, dev, two, tests, options=options, base=find_encoder(), home=home)


def measure_seeds(home: Path) -> dict[str, Any]:
    """Do the same with a tiny model and a few of the shipped rows."""
    from tests.support.serving_models import tiny_model

    base = tiny_model(home / "base", "sequence-classification", labels=SHAPE.labels)
    rows = [{**row, "group": str(n)} for n, row in enumerate(read_seed_rows("sentiment")[:48])]
    tests = {"round 2 test": rows[40:]}
    few = {"options": build_options(0, 1), "base": base, "home": home}
    return train_and_compare(rows[:16], rows[16:24], rows[24:40], tests, **few)


def train_and_compare(
    part: Rows,
    dev: Rows,
    two: Rows,
    tests: dict[str, Rows],
    *,
    options: TrainingOptions,
    base: Path,
    home: Path,
) -> dict[str, Any]:
    """Train A on `part` from `base`, B from A on round 2, too, and compare them on the tests."""
    started = time.perf_counter()
    more, more_dev = split_dev_rows(two, options)
    more = [{**row, "weight": ROUND_2_WEIGHT} for row in more]
    a, b = home / "a", home / "b"
    for first, folder, rows, stop in (
        (base, a, part, dev),
        (a, b, part + more, dev + more_dev),
    ):
        train(
            rows,
            kind=SHAPE.kind,
            base=first,
            output_dir=folder,
            options=options,
            progress=lambda done, steps, said, name=folder.name: show_progress(
                name, done, steps, said
            ),
            dev=stop,
        )
    found = {
        name: {k: v for k, v in compare_pair(a, b, rows).items() if k != "examples"}
        for name, rows in tests.items()
    }
    test = found["round 2 test"]
    return {
        "seed": options.seed,
        "rows": {"A": len(part), "B": len(part) + len(more)},
        "ratios": {"B / A accuracy": test["after"]["value"] / max(test["before"]["value"], 0.01)},
        "tests": found,
        "seconds": time.perf_counter() - started,
    }


def list_tests(two: Sequence[dict[str, Any]], *, quick: bool) -> Iterator[tuple[str, Rows]]:
    """Round 2's test, the part of it by people who wrote nothing of its dev set, and round 1's."""
    size = 300 if quick else None
    test = read_released_rows("r2-test")
    authors = {row["group"] for row in two}
    yield "round 2 test", test[:size]
    yield "round 2 test, other authors", [row for row in test if row["group"] not in authors]
    yield "round 1 test", read_released_rows("r1-test")[: 100 if quick else 720]


def compare_pair(a: Path, b: Path, rows: Rows) -> dict[str, Any]:
    """A (before) and B (after) on the same rows."""
    settings = json.loads((a / "dynabench.json").read_text())
    reading = Reading(SHAPE.kind, SHAPE.labels, settings["max_length"])
    said = [[one.output["label"] for one in answer_texts(f, rows, reading)] for f in (a, b)]
    return compare_models(CONFIG.verdict, SHAPE, rows, *said)


def show_progress(name: str, done: int, steps: int, said: str) -> None:
    if sys.stderr.isatty() or done % 50 == 0:
        print(f"\r{name.upper()}: {done} of {steps}, {said}   ", end="", file=sys.stderr)


def print_table(results: dict[str, Any]) -> None:
    print(f"\nseed {results['seed']}, {results['seconds']:.0f} s; rows: {results['rows']}")
    for name, test in results["tests"].items():
        scores = ", ".join(
            f"{model} {test[when]['value']:.3f} [{test[when]['low']:.3f}, {test[when]['high']:.3f}]"
            for model, when in (("A", "before"), ("B", "after"))
        )
        changes = f"{test['mended']} mended, {test['broken']} broken, McNemar p {test['p']:.2g}"
        print(f"{name} (n={test['after']['n']}): {scores}; {changes}")


def main() -> None:
    parser = build_parser(__doc__, quick="less data and no seeds")
    parser.add_argument("--seed", type=int, default=0, help="of chance")
    args = parser.parse_args()
    if not (args.smoke or (DATA / "dynasent-r2-test.jsonl.gz").exists()):
        parser.exit(
            EXIT_UNAVAILABLE, f"There is no DynaSent in {DATA}. Set DYNABENCH_DATA to its folder.\n"
        )
    with tempfile.TemporaryDirectory() as home:
        if args.smoke:
            results = measure_seeds(Path(home))
        else:
            results = measure(quick=args.quick, seed=args.seed, home=Path(home))
    results = add_origin(results, "torch", "transformers", "tokenizers")
    if args.json:
        print(json.dumps(results, indent=2))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
