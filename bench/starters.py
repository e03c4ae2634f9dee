"""Whether the shipped starters are what their seeds and options give: trains and compares.

    python bench/starters.py               # all five, minutes each
    python bench/starters.py --task nli    # one
    python bench/starters.py --quick       # hate speech with a part of the rows: no verdict

The rows are the held-out tenth (of vqa questions that no training sees) and, for sentiment,
DynaSent's round 1 dev set if DYNABENCH_DATA has it. Exits with 1 where fewer than SAME of the
answers agree. The same kind of processor and version of torch give the same weights.
"""

import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import add_origin, build_parser  # noqa: E402
from evaluation.seeds import read_seed_rows, split_held_out  # noqa: E402
from evaluation.training import starters  # noqa: E402
from evaluation.training.fine_tune import Reading, answer_texts  # noqa: E402
from evaluation.training.pictures import answer_pictures, draw_held_out_samples  # noqa: E402
from evaluation.training.shipped import find_shipped_folder, read_report, unpack_starter  # noqa: E402
from evaluation.training.starters import (  # noqa: E402
    PICTURE_STARTERS,
    STARTER_CODES,
    STARTERS,
    train_starter,
)
from serving.spec import OUTPUT_BY_KIND  # noqa: E402

DATA = Path(os.environ.get("DYNABENCH_DATA") or ROOT.parent / "shared" / "data")
MIN_AGREEMENT = 0.75


@contextmanager
def use_few_rows(code: str) -> Iterator[None]:
    """Within the block a starter learns from a part of its seeds, once."""
    starter = STARTERS[code]
    short = replace(starter, options=replace(starter.options, epochs=1))

    def part(rows: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        train, held = split_held_out(rows)
        return train[:320], held[:100]

    with (
        patch.dict(STARTERS, {code: short}),
        patch.object(starters, "split_held_out", part),
    ):
        yield


def compare_shipped(code: str, scratch: Path) -> dict[str, Any]:
    """Compare a shipped starter of pictures with itself on two of them, without training."""
    folder = scratch / "merged"
    folder.mkdir()
    unpack_starter(find_shipped_folder(code), folder)
    held = draw_held_out_samples(2)
    said = [answer_pictures(folder, held) for _ in range(2)]
    agree = [one == other for one, other in zip(*said, strict=True)]
    return {"task": code, "rows": len(agree), "agree": sum(agree) / len(agree)}


def compare(code: str, scratch: Path) -> dict[str, Any]:
    """The share of answers in which the shipped and the new starter agree, and both reports."""
    train_starter(code, scratch / "new", lambda done, steps, words: None)
    folders = {"shipped": find_shipped_folder(code), "new": scratch / "new"}
    ask, said, sums = build_asker(code), [], set()
    for name, folder in folders.items():
        merged = scratch / f"{name}-merged"
        merged.mkdir()
        sums.add(unpack_starter(folder, merged))
        said.append(ask(merged))
    agree = [one == other for one, other in zip(*said, strict=True)]
    return {
        "task": code,
        "rows": len(agree),
        "agree": sum(agree) / len(agree),
        "same_weights": len(sums) == 1,
        "held_out": {name: read_report(folder)["held_out"] for name, folder in folders.items()},
    }


def build_asker(code: str) -> Callable[[Path], list[str]]:
    """What gives a folder's answers."""
    if code in PICTURE_STARTERS:
        held = draw_held_out_samples(1000)
        return lambda folder: answer_pictures(folder, held)
    reading, rows = (
        Reading(STARTERS[code].kind, STARTERS[code].options.labels, None),
        list_rows(code),
    )
    name = OUTPUT_BY_KIND[reading.kind]
    return lambda folder: [found.output[name] for found in answer_texts(folder, rows, reading)]


def list_rows(code: str) -> list[dict[str, Any]]:
    rows = [dict(row) for row in split_held_out(read_seed_rows(code))[1]]
    sentences = DATA / "dynasent-r1-dev.jsonl.gz"
    if code == "sentiment" and sentences.exists():
        with gzip.open(sentences, "rt", encoding="utf-8") as file:
            rows += [json.loads(line)["input"] for line in file]
    return rows


def main() -> None:
    parser = build_parser(__doc__, quick="hate speech, with a part of the rows, once")
    parser.add_argument("--task", choices=STARTER_CODES, help="only this task")
    args = parser.parse_args()
    is_small = args.quick or args.smoke
    tasks = [args.task] if args.task else [*STARTER_CODES]
    if is_small:
        tasks = [*PICTURE_STARTERS] if args.smoke else ["hate-speech"]
    reports = []
    for code in tasks:
        with TemporaryDirectory() as scratch, use_few_rows(code) if args.quick else nullcontext():
            work = compare_shipped if args.smoke else compare
            reports.append(work(code, Path(scratch)))
        if not args.json:
            print(json.dumps(reports[-1]), flush=True)
    ratios = {f"{one['task']}: share of the same answers": one["agree"] for one in reports}
    if args.json:
        results = {"ratios": ratios, "starters": reports}
        print(json.dumps(add_origin(results, "torch", "transformers"), indent=1))
    sys.exit(not is_small and min(ratios.values()) < MIN_AGREEMENT)


if __name__ == "__main__":
    main()
