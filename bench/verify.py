"""How long `dynabench verify` takes to recompute a whole snapshot from raw answers.

    python -m bench.verify --quick            # 50 models × 4 sets × 200 examples, under a minute
    python -m bench.verify --json             # 1,000 models × 20 sets × 300 examples
    python -m bench.verify --rows 1000        # of more examples

The answers are drawn by a seed, and their scores are counted by numpy alone, so that the command is
also checked. For comparison: a bare reader that downloads and parses the same lines. The site runs
on the same machine. See bench/README.md.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from argparse import SUPPRESS
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.command import add_origin, build_parser
from bench.prepared import prepare_site, serve_web_here, set_up_site_here
from bench.site import build_environment, serve_web
from bench.verdict_page import ROOT

LABELS = ("entailment", "neutral", "contradiction")
SNAPSHOT_PATH = "/t/nli/leaderboard/snapshots/1/"
EVIDENCE_PATH = "/api/v1/tasks/nli/leaderboard/snapshots/1/evidence/"
USAGE = {
    "examples_per_second": 20.0, "peak_bytes": 2**31, "mean_bytes": 2**30,
    "latency_p95_seconds": 0.05,
}  # fmt: skip
MEASUREMENTS = {
    "timed_answers": 300, "timed_seconds": 15.0,
    "memory_peaks": [2**30, 2**31, 2**29] * 20,
    "memory_byte_seconds": 15 * 2**30, "memory_seconds": 15,
    "single_seconds": [[0.03, 20], [0.05, 20]],
}  # fmt: skip
"""What gives the values of USAGE."""
KINDS = ("lower_case", "misspellings", "upper_case", "swapped_letters")
"""The kinds of perturbation, one for each variant of an example."""
BARS = {"minutes": 10.0, "MB": 500.0}  # at most, with two cores


def fill_site(models: int, sets: int, rows: int) -> None:
    """Store public sets, published models with their answers and scores, and a snapshot."""
    import numpy as np
    from django.db import transaction
    from django.utils import timezone

    from evaluation.models import Dataset, EvaluationSet, Submission
    from evaluation.test_sets.services import make_version
    from leaderboard.snapshots.services import take_snapshot
    from tasks.models import Round, Task
    from tasks.services import install_official_tasks

    install_official_tasks()
    task = Task.objects.get(code="nli")
    # Fairness is computed in the same way, of fewer variants.
    task.config_text = task.config_text.replace("[fairness, robustness]", "[robustness]")
    task.config_text = task.config_text.replace(", fairness: 1", "")
    task.save()
    round = task.rounds.get()
    Round.objects.filter(pk=round.pk).update(state="released")
    dataset = Dataset.objects.create(round=round, version=1, state="done", options={})
    rng = np.random.default_rng(7)
    skills = rng.uniform(0.4, 0.9, models)
    submissions = [
        Submission(
            task=task, name=f"Model {number}", kind="directory", state="done",
            is_published=True, finished_at=timezone.now(),
        )
        for number in range(models)
    ]  # fmt: skip
    Submission.objects.bulk_create(submissions)
    for number in range(sets):
        right_columns = rng.integers(len(LABELS), size=rows)
        evaluation_set = EvaluationSet.objects.create(
            task=task, name=f"set-{number}", answers_public=True, may_leave=True
        )
        lines = _generate_rows(number, right_columns)
        version = make_version(evaluation_set, lines, None, dataset)
        with transaction.atomic():
            _store_runs(submissions, version, right_columns, skills, rng)
        print(f"Stored {version}.", file=sys.stderr)
    take_snapshot(task=task, actor=None)


def _generate_rows(set_number: int, right_columns: Any) -> Iterator[Any]:
    from evaluation.contract import SetRow

    for number, column in enumerate(right_columns):
        text = {"premise": f"Person {number} opened shop {set_number}.", "hypothesis": "It opened."}
        slices = {"tag": (f"t{number % 5}",)}
        yield SetRow(f"s{set_number}-{number:05}", text, (LABELS[column],), slices)


def _store_runs(
    submissions: list[Any], version: Any, right_columns: Any, skills: Any, rng: Any
) -> None:
    """Store each model's answers on a set, with the scores that numpy counts."""
    import numpy as np
    from django.core.files.base import ContentFile
    from django.utils import timezone

    from evaluation.contract import Answer
    from evaluation.isolation.inference.evaluate import build_prediction_line
    from evaluation.models import EvaluationRun, Score

    rows, prefix = len(right_columns), version.evaluation_set.name.replace("set-", "s")
    # Each line once, because making 20 million lines takes longer than what is measured.
    lines = []
    for number in range(rows):
        uid = f"{prefix}-{number:05}"
        lines.append([build_prediction_line(uid, Answer(label)) for label in LABELS])
    variant_lines = [
        [
            [build_prediction_line(f"{prefix}-{number:05}", Answer(label), kind=kind)
             for label in LABELS]
            for kind in KINDS
        ]
        for number in range(rows)
    ]  # fmt: skip
    scores = []
    for submission, skill in zip(submissions, skills, strict=True):
        guessed_columns = rng.integers(len(LABELS), size=rows)
        columns = np.where(rng.random(rows) < skill, right_columns, guessed_columns)
        text = b"".join(row[column] for row, column in zip(lines, columns, strict=True))
        run = EvaluationRun.objects.create(
            submission=submission, version=version, state="done", outcome="ok", runner="docker",
            seed=7, finished_at=timezone.now(), usage=USAGE, measurements=MEASUREMENTS,
            predictions=ContentFile(gzip.compress(text, 1), name="p.jsonl.gz"),
        )  # fmt: skip
        accuracy = float(np.mean(columns == right_columns))
        shown = {"low": None, "high": None, "n": rows}
        scores.append(Score(run=run, metric="accuracy", value=accuracy, **shown))
        macro_f1 = _count_macro_f1(columns, right_columns)
        scores.append(Score(run=run, metric="macro_f1", value=macro_f1, **shown))
        # One in ten variants changes the answer, which is how models differ.
        is_changed = rng.random((rows, len(KINDS))) < 0.1
        after = np.where(is_changed, (columns[:, None] + 1) % len(LABELS), columns[:, None])
        text = b"".join(
            variant_lines[row][kind][after[row, kind]]
            for row in range(rows)
            for kind in range(len(KINDS))
        )
        run = EvaluationRun.objects.create(
            submission=submission, version=version, suite="robustness", state="done",
            outcome="ok", runner="docker", seed=7, finished_at=timezone.now(),
            predictions=ContentFile(gzip.compress(text, 1), name="p.jsonl.gz"),
        )  # fmt: skip
        for metric, value in _count_robustness(columns, after, right_columns).items():
            scores.append(Score(run=run, metric=metric, value=value, **shown))
    Score.objects.bulk_create(scores)


def _count_robustness(columns: Any, after: Any, right_columns: Any) -> dict[str, float]:
    """Return the scores of perturbed answers, counted without the code that is measured."""
    accuracies = (after == right_columns[:, None]).mean(axis=0)
    return {
        "worst_kind": float(accuracies.min()),
        "worst_kind_drop": float((columns == right_columns).mean() - accuracies.min()),
        "consistency": float((after == columns[:, None]).mean()),
    }


def _count_macro_f1(columns: Any, right_columns: Any) -> float:
    """Return the mean F1 of the labels, counted without the code that is measured."""
    parts = []
    for column in range(len(LABELS)):
        answered, right = columns == column, right_columns == column
        if answered.any() or right.any():
            parts.append(2 * (answered & right).sum() / (answered.sum() + right.sum()))
    return float(sum(parts) / len(parts))


def read_bare(port: int) -> tuple[float, int]:
    """Download and parse all labels and answers; return the seconds and the number of lines."""
    import orjson

    address = f"http://127.0.0.1:{port}{EVIDENCE_PATH}"
    started, count = time.perf_counter(), 0
    with urllib.request.urlopen(address) as answer:
        names = [each["name"] for each in json.load(answer)["sets"]]
    for name in names:
        for part in ("labels", "answers", "perturbed"):
            with open_patiently(f"{address}{name}/{part}/") as lines:
                for line in lines:
                    orjson.loads(line)
                    count += 1
    return time.perf_counter() - started, count


def open_patiently(address: str) -> Any:
    """Open an address, waiting as long as the site's limit on downloads asks for."""
    while True:
        try:
            return urllib.request.urlopen(address)
        except urllib.error.HTTPError as error:
            if error.code != 429:
                raise
            time.sleep(int(error.headers["Retry-After"]))


def time_verify(port: int, *more: str) -> dict[str, Any]:
    """Return the report of the command in a process of its own, with its seconds and memory."""
    command = [sys.executable, "-m", "dynabench.client", "verify"]
    command += [f"http://127.0.0.1:{port}{SNAPSHOT_PATH}", "--json", *more]
    started = time.perf_counter()
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(command, cwd=ROOT, stdout=printed)
        # Of this process and those that it started: what filled the site took more memory.
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
        printed.seek(0)
        text = printed.read()
    report: dict[str, Any] = json.loads(text or "{}")
    if not report.get("ok"):
        sys.exit(f"The snapshot was not verified: {text.decode()[:2000]}")
    return {
        "cells": report["cells"],
        "seconds": seconds,
        "processor seconds": usage.ru_utime + usage.ru_stime,
        "MB": usage.ru_maxrss / 1024,  # of the largest process
    }


def measure(models: int, sets: int, rows: int) -> dict[str, Any]:
    """Return all figures of a throw-away site of this size."""
    with tempfile.TemporaryDirectory() as folder:
        env = build_environment(Path(folder), f"sqlite:///{folder}/bench.sqlite3")
        prepare_site(env)
        sizes = [str(number) for number in (models, sets, rows)]
        command = [sys.executable, "-m", "bench.verify", "--step", *sizes]
        subprocess.run(command, cwd=ROOT, env=env, check=True)
        with serve_web(env, 2) as (port, _pid):
            found = time_verify(port)
            # Until the site's limit on downloads counts anew.
            bare_seconds, lines = read_bare(port)
    return add_ratios(found, bare_seconds, lines)


def add_ratios(found: dict[str, Any], bare_seconds: float, lines: int) -> dict[str, Any]:
    """Add the ratios to what was measured."""
    ratios = {"verify / (download + parse)": found["seconds"] / bare_seconds}
    figures = {"bare seconds": bare_seconds, "lines": lines, "minutes": found["seconds"] / 60}
    return found | figures | {"ratios": ratios}


def measure_here() -> dict[str, Any]:
    """Return the figures of a site in this process, which mean nothing."""
    set_up_site_here()
    fill_site(2, 1, 20)
    with serve_web_here() as (port, _pid):
        return add_ratios(time_verify(port), *read_bare(port))


def main() -> None:
    parser = build_parser(__doc__, quick="50 models, 4 sets, 200 examples each")
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--rows", type=int, default=300, help="examples of each set")
    parser.add_argument("--step", type=int, nargs=3, help=SUPPRESS)
    args = parser.parse_args()
    if args.step:
        import dynabench.wsgi  # noqa: F401 - sets Django up as web processes do

        fill_site(*args.step)
        return
    sizes = (50, 4, 200) if args.quick else (args.models, args.sets, args.rows)
    found = measure_here() if args.smoke else measure(*sizes)
    names = ("models", "sets", "rows")
    results = {**found, **dict(zip(names, sizes, strict=True)), "site cores": os.cpu_count()}
    results = add_origin(results, "django", "numpy", "orjson", lower=results["ratios"])
    if args.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{results['lines']:,} lines, {sum(found['cells'].values()):,} cells: {found['cells']}")
    for name in ("minutes", "processor seconds", "MB", "bare seconds"):
        print(f"{name:32} {found[name]:8.2f}")
    for name, ratio in results["ratios"].items():
        print(f"{name:32} {ratio:8.2f}")
    print(f"wanted at most: {BARS}")


if __name__ == "__main__":
    main()
