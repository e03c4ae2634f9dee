"""`dynabench verify`: recompute a release's digests or a snapshot's scores on this machine."""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dynabench.client.archive import compute_digest
from dynabench.client.client import DynabenchClient
from dynabench.client.commands.shared import (
    FAILED,
    USAGE,
    CommandError,
    add_command,
    open_client,
    print_note,
    print_result,
)
from dynabench.client.commands.test import (
    FULL_CLIENT_HINT,
    INSTALL_HINT,
    find_server_modules,
    refuse_missing,
)
from dynabench.client.errors import NotFound

PACKAGES = ("numpy", "orjson", "pydantic", "yaml")
"""The packages that recomputing scores needs."""
SNAPSHOT_PATTERN = re.compile(r"^/t/([\w-]+)/leaderboard/snapshots/(\d+)/?$")
RELEASE_PATTERN = re.compile(r"^/t/([\w-]+)/rounds/(\d+)/data/(?:(\d+)(?:\.zip|/.*)?)?$")
VALUE_TOLERANCE = 0.001
"""Points of a percentage by which a value may differ: tables have four digits."""
INTERVAL_TOLERANCE = 0.5
"""Points by which the end of a resampled interval may differ with another version of numpy."""
MAX_SHOWN_DIFFERENCES = 50
"""The maximum number of differing cells in the text: a large board has 40,000 cells."""
SUMS_FILE = "SHA256SUMS"
EQUAL, DIFFERS, NOT_CHECKED = "equal", "differs", "not checked"
COST_COLUMNS = ("throughput", "latency_p95", "memory", "memory_mean")
PERTURBED_COLUMNS = ("robustness", "fairness")
"""The beginnings of columns that compare answers to perturbed examples."""
COST_DIGITS = 4
"""Digits after the point of a cost in a table."""

Cell = Mapping[str, float | None]


class CellCheck(NamedTuple):
    """The result for one cell. state: EQUAL, DIFFERS or NOT_CHECKED."""

    set: str
    model: str
    metric: str
    state: str
    message: str = ""


def add_commands(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "verify", verify, "recompute a release's digests or a snapshot's scores"
    )
    parser.add_argument("url", help="the page of a snapshot or of a released round")
    parser.add_argument(
        "--to", type=Path, help="keep the downloaded files in this folder; default: delete them"
    )
    parser.add_argument(
        "--intervals", action="store_true", help="also resample intervals, which takes longer"
    )


def verify(args: argparse.Namespace) -> int:
    """Download what is behind a page's numbers, recompute them, and print what differs.

    Exits with 1 if anything differs, or nothing could be recomputed.
    """
    # The page that somebody reads and cites, not an address of the API.
    address = urlsplit(args.url)
    snapshot = SNAPSHOT_PATTERN.match(address.path)
    release = RELEASE_PATTERN.match(address.path)
    if not address.netloc or not (snapshot or release):
        raise CommandError(
            "Give the URL of a snapshot (…/t/nli/leaderboard/snapshots/3/) or of a released round "
            "(…/t/nli/rounds/1/data/).",
            USAGE,
        )
    args.server = f"{address.scheme}://{address.netloc}"
    # The page's own server, whatever the last login was.
    client = open_client(args)
    with TemporaryDirectory() as scratch:
        folder = args.to or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if snapshot:
            report = _verify_snapshot(
                client, snapshot[1], int(snapshot[2]), folder,
                with_intervals=args.intervals, keeps_files=args.to is not None,
            )  # fmt: skip
        else:
            assert release
            version = int(release[3]) if release[3] else None
            report = _verify_release(client, release[1], int(release[2]), version, folder)
    if not report["ok"]:
        raise CommandError(report.pop("text"), FAILED, report)
    print_result(args, report, report.pop("text"))
    return 0


def _verify_release(
    client: DynabenchClient, task: str, round: int, version: int | None, folder: Path
) -> dict[str, Any]:
    """Return the report on the digests of a release's files.

    The download compares each file with the digest that the API gives. Here each is compared with
    SHA256SUMS, whose own digest is what the citation of a release names.
    """
    release = client.download_data(task, round, version, folder)
    # Read as bytes: their digest must not depend on this machine's line ends.
    sums = (release / SUMS_FILE).read_bytes()
    problems, count = [], 0
    for line in sums.decode().splitlines():
        expected_digest, _, name = line.partition("  ")
        # Only the last part: a name with folders must not read elsewhere.
        path = release / Path(name).name
        count += 1
        if not path.is_file():
            problems.append(f"{name}: missing")
        elif compute_digest(path) != expected_digest:
            problems.append(f"{name}: the digest differs")
    digest = hashlib.sha256(sums).hexdigest()
    lines = [f"{release.name}: {count - len(problems)} of {count} digests are equal."]
    lines += [f"  {problem}" for problem in problems]
    lines.append(f"SHA-256 of {SUMS_FILE}, as cited: {digest}")
    report = {"ok": not problems, "files": count, "problems": problems, "sha256": digest}
    return {**report, "text": "\n".join(lines)}


def _verify_snapshot(
    client: DynabenchClient,
    task: str,
    number: int,
    folder: Path,
    *,
    with_intervals: bool,
    keeps_files: bool,
) -> dict[str, Any]:
    """Return the report on a snapshot's digest and on each of its cells."""
    if not (find_server_modules() / "evaluation/scoring/recompute.py").is_file():
        raise CommandError(
            f"This client was built without the scoring code. {FULL_CLIENT_HINT}", USAGE
        )
    refuse_missing("Recomputing scores", PACKAGES)
    # 1. The table as it is cited, and what it was computed from.
    snapshot = client.snapshot(task, number)
    table: Mapping[str, Any] = snapshot["table"]
    if "rows" not in table:
        raise CommandError("The scores of an arena can't be recomputed: battles aren't public.")
    evidence = client.snapshot_evidence(task, number)
    config_bytes = evidence["config_text"].encode()
    (folder / "task.yaml").write_bytes(config_bytes)
    checks: list[CellCheck] = []
    problems = []
    # A table that was changed after the snapshot has another digest than the one cited.
    if _compute_table_digest(table) != snapshot["sha256"]:
        problems.append("The digest of the table differs.")
    # The table names its configuration, so that nobody can score it by another one later.
    config_digest = table.get("config_sha256")
    if config_digest and config_digest != hashlib.sha256(config_bytes).hexdigest():
        problems.append("The digest of the configuration differs.")
    has_perturbed = any(metric["name"].startswith(PERTURBED_COLUMNS) for metric in table["metrics"])
    # 2. Set by set, in a process of its own for each: the answers of all models come in one file.
    # These compute, so that threads of this process only wait for them, while it downloads on.
    jobs = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in [each["name"] for each in evidence["sets"] if each["is_public"]]:
            print_note(f"Downloading the answers on {name} …")
            files = [*client.download_evidence(task, number, name, folder)]
            if has_perturbed:
                perturbed_files = _download_perturbed(client, task, number, name, folder)
                # Servers that keep the configuration of a snapshot have these answers, too.
                if config_digest and not perturbed_files:
                    problems.append(f"The answers to perturbed examples of {name} are missing.")
                files += perturbed_files
            jobs[name] = pool.submit(_recompute, folder, name, files, with_intervals, keeps_files)
    outputs = {name: job.result() for name, job in jobs.items()}
    # 3. Each cell beside what the answers give.
    for board_set in table["sets"]:
        name = board_set["name"]
        output = outputs.get(name)
        if output is not None and output[0]["sha256"] != board_set["sha256"]:
            problems.append(f"The labels of {name} have another digest than the set.")
        checks += _check_set(table, name, output, has_config=bool(config_digest))
    return _write_report(task, number, problems, checks)


def _download_perturbed(
    client: DynabenchClient, task: str, number: int, name: str, folder: Path
) -> list[Path]:
    """Return the file of answers to perturbed examples; empty if the server has none."""
    try:
        return [client.download_perturbed(task, number, name, folder)]
    except NotFound:
        return []  # an older server


def _compute_table_digest(table: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a table's canonical JSON."""
    text = json.dumps(table, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _recompute(
    folder: Path, name: str, files: Sequence[Path], with_intervals: bool, keeps_files: bool
) -> list[dict[str, Any]]:
    """Return the lines that the scoring code prints for a set: its digest, then each model.

    files: the set's labels and answers. They are deleted afterwards unless `keeps_files`.
    """
    root = find_server_modules()
    # A process of its own: the client itself imports neither numpy nor the server's modules.
    process = subprocess.run(
        [
            sys.executable, "-m", "evaluation.scoring.recompute", folder.absolute() / "task.yaml",
            *(file.absolute() for file in files),
            *(["--intervals"] if with_intervals else []),
        ],
        cwd=root,
        # `evaluation` is no package of the client, so its folder becomes the process's path.
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
    )  # fmt: skip
    if process.returncode:
        errors = process.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise CommandError(f"{name}: the scores can't be computed ({errors[-1]}). {INSTALL_HINT}")
    if not keeps_files:
        # At once, because the answers on all sets together may fill a small disk.
        for file in files:
            file.unlink()
    return [json.loads(line) for line in process.stdout.splitlines()]


def _check_set(
    table: Mapping[str, Any],
    name: str,
    output: Sequence[Mapping[str, Any]] | None,
    *,
    has_config: bool,
) -> Iterator[CellCheck]:
    """Yield the check of each cell of a set.

    output: None for a set whose labels are secret. has_config: whether the snapshot keeps the
    configuration that scored it.
    """
    recomputed = {line["model"]: line for line in output[1:]} if output else {}
    rounded_sets = {each["name"] for each in table["sets"] if each.get("is_sealed")}
    for row in table["rows"]:
        found = recomputed.get(row["id"])
        for metric, cell in row["sets"].get(name, {}).items():
            if output is None:
                state, message = NOT_CHECKED, "the labels are not public"
            elif name in rounded_sets:
                state, message = NOT_CHECKED, "scores were rounded while the labels were secret"
            elif found is None:
                state, message = NOT_CHECKED, "the answers are no longer public"
            else:
                state, message = _check_cell(metric, cell, found, has_config=has_config)
            yield CellCheck(name, row["model"], metric, state, message)


def _check_cell(
    metric: str, cell: Cell, found: Mapping[str, Any], *, has_config: bool
) -> tuple[str, str]:
    """Return the state of a cell and, unless it is equal, what to say about it.

    found: the line of the cell's model, as `evaluation.scoring.recompute` prints it.
    """
    if metric in COST_COLUMNS:
        if metric not in found["costs"]:
            return NOT_CHECKED, f"the measurements behind {metric} were not kept"
        message = _compare_cost(cell, found["costs"][metric])
    elif found["error"]:
        message = found["error"]
    elif metric not in found["scores"]:
        return NOT_CHECKED, _explain_missing(metric, has_config=has_config)
    else:
        message = _compare(cell, found["scores"][metric])
        if message and not has_config:
            message += " (by today's configuration: the snapshot keeps none)"
    return (DIFFERS, message) if message else (EQUAL, "")


def _compare(cell: Cell, score: Sequence[float | None]) -> str:
    """Return how a recomputed score differs from a cell; "" if it is equal.

    score: the value and the ends of its interval, as shares. Cells are in percent.
    """
    tolerances = (VALUE_TOLERANCE, INTERVAL_TOLERANCE, INTERVAL_TOLERANCE)
    for key, share, tolerance in zip(("value", "low", "high"), score, tolerances, strict=True):
        shown = cell.get(key)
        if shown is None or share is None:
            continue  # few examples have no interval
        if abs(shown - 100 * share) > tolerance:
            return f"{key} is {shown}, recomputed {100 * share:.4f}"
    return ""


def _explain_missing(metric: str, *, has_config: bool) -> str:
    """Return why a column can't be recomputed."""
    if metric.startswith(PERTURBED_COLUMNS):
        reason = f"the answers that {metric} compares are not public"
    elif metric == "llm_judge" or metric.startswith("custom:"):
        reason = f"not every answer still has its {metric}"
    else:
        reason = f"{metric} needs what this machine lacks"
    if not has_config:
        reason += ", or today's configuration has no such column"
    return reason


def _compare_cost(cell: Cell, cost: float) -> str:
    """Return how a recomputed speed or memory differs from a cell; "" if it is equal."""
    shown = cell.get("value")
    if shown is None or abs(shown - cost) <= 10**-COST_DIGITS:
        return ""
    return f"value is {shown}, recomputed {cost:.{COST_DIGITS}f}"


def _write_report(
    task: str, number: int, problems: Sequence[str], checks: Sequence[CellCheck]
) -> dict[str, Any]:
    states = Counter(check.state for check in checks)
    lines = [f"Snapshot {number} of {task}: {states[EQUAL]} of {len(checks)} cells are equal."]
    lines += problems
    differing_checks = [check for check in checks if check.state == DIFFERS]
    for check in differing_checks[:MAX_SHOWN_DIFFERENCES]:
        lines.append(f"  {check.set}, {check.model}, {check.metric}: {check.message}")
    if (rest_count := len(differing_checks) - MAX_SHOWN_DIFFERENCES) > 0:
        lines.append(f"  and {rest_count} others, which --json lists")
    reasons = Counter(check.message for check in checks if check.state == NOT_CHECKED)
    lines += [f"Not checked: {count} cells, {reason}." for reason, count in reasons.items()]
    return {
        # A table of which nothing was recomputed is no verified one.
        "ok": not problems and not states[DIFFERS] and bool(states[EQUAL]),
        "cells": dict(states),
        "problems": list(problems),
        "differences": [check._asdict() for check in differing_checks],
        "text": "\n".join(lines),
    }
