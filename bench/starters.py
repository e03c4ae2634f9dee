"""Whether the shipped starters are what their seeds and options give: trains and compares.

    python bench/starters.py               # all five, minutes each
    python bench/starters.py --task nli    # one

The rows are the held-out tenth (of vqa questions that no training sees) and, for sentiment,
DynaSent's round 1 dev set if DYNABENCH_DATA has it. Exits with 1 where fewer than SAME of the
answers agree. The same kind of processor and version of torch give the same weights.
"""

import argparse
import gzip
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from evaluation.seeds import held_out, seed_rows  # noqa: E402
from evaluation.training.fine_tune import Reading, answers  # noqa: E402
from evaluation.training.pictures import held_out_samples, picture_answers  # noqa: E402
from evaluation.training.shipped import read_report, shipped_folder, unpack  # noqa: E402
from evaluation.training.starters import (  # noqa: E402
    CODES,
    PICTURE_STARTERS,
    STARTERS,
    train_starter,
)
from tasks.targets.serving.spec import OUTPUTS  # noqa: E402

DATA = Path(os.environ.get("DYNABENCH_DATA") or ROOT.parent / "shared" / "data")
SAME = 0.75


def compare(code: str, scratch: Path) -> dict[str, Any]:
    """The share of answers in which the shipped and the new starter agree, and both reports."""
    train_starter(code, scratch / "new", lambda done, steps, words: None)
    folders = {"shipped": shipped_folder(code), "new": scratch / "new"}
    ask, said, sums = asker(code), [], set()
    for name, folder in folders.items():
        merged = scratch / f"{name}-merged"
        merged.mkdir()
        sums.add(unpack(folder, merged))
        said.append(ask(merged))
    agree = [one == other for one, other in zip(*said, strict=True)]
    return {
        "task": code,
        "rows": len(agree),
        "agree": sum(agree) / len(agree),
        "same_weights": len(sums) == 1,
        "held_out": {name: read_report(folder)["held_out"] for name, folder in folders.items()},
    }


def asker(code: str) -> Callable[[Path], list[str]]:
    """What gives a folder's answers."""
    if code in PICTURE_STARTERS:
        held = held_out_samples(1000)
        return lambda folder: picture_answers(folder, held)
    reading, rows = Reading(STARTERS[code].kind, STARTERS[code].options.labels, None), rows_of(code)
    name = OUTPUTS[reading.kind]
    return lambda folder: [found.output[name] for found in answers(folder, rows, reading)]


def rows_of(code: str) -> list[dict[str, Any]]:
    rows = [dict(row) for row in held_out(seed_rows(code))[1]]
    sentences = DATA / "dynasent-r1-dev.jsonl.gz"
    if code == "sentiment" and sentences.exists():
        with gzip.open(sentences, "rt", encoding="utf-8") as file:
            rows += [json.loads(line)["input"] for line in file]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=CODES, help="only this task")
    task = parser.parse_args().task
    worst = 1.0
    for code in [task] if task else CODES:
        with TemporaryDirectory() as scratch:
            found = compare(code, Path(scratch))
        print(json.dumps(found), flush=True)
        worst = min(worst, found["agree"])
    sys.exit(worst < SAME)


if __name__ == "__main__":
    main()
