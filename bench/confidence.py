"""How sure the starter models are beside how often they are right, before and after calibration.

    python -m bench.confidence               # all starters, a few minutes
    python -m bench.confidence --task nli    # one
    python -m bench.confidence --quick       # hate speech

Expected calibration error (ten bins) and negative log-likelihood of the shipped heads, and as they
were before they were divided by their temperature. The rows are the held-out tenth (of vqa
questions that no training sees) and, where DYNABENCH_DATA has them, rows that others collected.
"""

import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import add_origin, build_parser  # noqa: E402
from evaluation.seeds import Row, read_seed_rows, split_held_out  # noqa: E402
from evaluation.training.calibration import (  # noqa: E402
    ScoredRow,
    compute_probabilities,
    restore_scores,
)
from evaluation.training.confidence import score_rows  # noqa: E402
from evaluation.training.pictures import draw_held_out_samples, score_picture_rows  # noqa: E402
from evaluation.training.shipped import find_shipped_folder, read_report, unpack_starter  # noqa: E402
from evaluation.training.starters import (  # noqa: E402
    PICTURE_STARTERS,
    STARTER_CODES,
    compute_confidence_figures,
)

DATA = Path(os.environ.get("DYNABENCH_DATA") or ROOT.parent / "shared" / "data")
CERTAIN_SHARE = 0.99


def read_dynasent_rows() -> Iterator[Row]:
    """Yield DynaSent's round 1 dev rows."""
    for line in read_lines("dynasent-r1-dev.jsonl.gz"):
        yield {"text": line["input"]["text"], "label": line["metadata"]["gold_label"]}


def read_hate_rows() -> Iterator[Row]:
    """Yield HatemojiBuild's dev rows, most of which were written to fool models."""
    for line in read_lines("train/hate-hatemojibuild-dev.jsonl.gz"):
        yield {"text": line["input"]["text"], "label": line["metadata"]["gold_label"]}


def read_nli_rows() -> Iterator[Row]:
    """Yield NLI pairs with counterfactual revisions, dev."""
    for line in read_lines("train/nli-cad-dev.jsonl.gz"):
        yield {**line["context"], **line["input"], "label": line["metadata"]["gold_label"]}


def read_qa_rows() -> Iterator[Row]:
    """Yield each ninth SQuAD-style question of the test part."""
    for line in list(read_lines("train/qa-aqa-bert-test.jsonl.gz"))[::9]:
        yield {**line["context"], **line["input"], "answer": line["author_label"]}


OTHER_ROWS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "nli": read_nli_rows,
    "qa": read_qa_rows,
    "sentiment": read_dynasent_rows,
    "hate-speech": read_hate_rows,
}
"""By task, rows that others collected."""


def read_lines(name: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file of DATA; none where it is missing."""
    path = DATA / name
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)


def measure(code: str, scratch: Path, *, few: bool) -> dict[str, Any]:
    """Return the figures of a shipped starter; few: on two questions or eight rows."""
    folder = scratch / code
    folder.mkdir()
    unpack_starter(find_shipped_folder(code), folder)
    temperature = read_report(find_shipped_folder(code))["calibration"]["temperature"]
    found: dict[str, Any] = {"task": code, "temperature": temperature}
    for name, rows in score_sets(code, folder, few=few):
        found[name] = {
            "before": compute_figures(restore_scores(rows, temperature)),
            "after": compute_figures(rows),
        }
    return found


def score_sets(code: str, folder: Path, *, few: bool) -> Iterator[tuple[str, list[ScoredRow]]]:
    """Yield the name of each set of rows with its scores."""
    if code in PICTURE_STARTERS:
        yield "held_out", score_picture_rows(folder, draw_held_out_samples(2 if few else 2000))
        return
    most = 8 if few else None
    yield "held_out", score_rows(folder, split_held_out(read_seed_rows(code))[1][:most])
    others = list(OTHER_ROWS[code]())[:most]
    if others:
        yield "others", score_rows(folder, others)


def compute_figures(rows: Sequence[ScoredRow]) -> dict[str, float]:
    """Return accuracy, mean confidence, both errors, and how many mistakes are certain."""
    confidences = [float(compute_probabilities(row.scores).max()) for row in rows]
    rights = [int(row.scores.argmax()) == row.right for row in rows]
    wrong = [share for share, is_right in zip(confidences, rights, strict=True) if not is_right]
    certain = sum(share > CERTAIN_SHARE for share in wrong)
    return {
        "rows": len(rows),
        "accuracy": round(sum(rights) / len(rows), 4),
        "confidence": round(sum(confidences) / len(rows), 4),
        **compute_confidence_figures(rows),
        "wrong": len(wrong),
        "wrong_and_certain": certain,
    }


def main() -> None:
    parser = build_parser(__doc__, quick="hate speech only")
    parser.add_argument("--task", choices=STARTER_CODES, help="only this task")
    args = parser.parse_args()
    tasks = [args.task] if args.task else [*STARTER_CODES]
    if args.quick or args.smoke:
        tasks = ["vqa" if args.smoke else "hate-speech"]
    reports = []
    with TemporaryDirectory() as scratch:
        for code in tasks:
            reports.append(measure(code, Path(scratch), few=args.smoke))
            if not args.json:
                print(json.dumps(reports[-1]), flush=True)
    ratios = {
        f"{one['task']}: calibration error on held-out rows": one["held_out"]["after"]["ece"]
        for one in reports
    }
    if args.json:
        results = {"ratios": ratios, "starters": reports}
        print(json.dumps(add_origin(results, "torch", "transformers", lower=ratios), indent=1))


if __name__ == "__main__":
    main()
