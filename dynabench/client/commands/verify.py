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

Cell = Mapping[str, float | None]


class CellCheck(NamedTuple):
    """The result for one cell. state: equal, differs, or not checked."""

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

    Exits with 1 if anything differs.
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
    (folder / "task.yaml").write_text(evidence["config_text"], encoding="utf-8")
    checks: list[CellCheck] = []
    problems = []
    # A table that was changed after the snapshot has another digest than the one cited.
    if _compute_table_digest(table) != snapshot["sha256"]:
        problems.append("The digest of the table differs.")
    # 2. Set by set, in a process of its own for each: the answers of all models come in one file.
    # These compute, so that threads of this process only wait for them, while it downloads on.
    jobs = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in [each["name"] for each in evidence["sets"] if each["is_public"]]:
            print_note(f"Downloading the answers on {name} …")
            files = client.download_evidence(task, number, name, folder)
            jobs[name] = pool.submit(_recompute, folder, name, files, with_intervals, keeps_files)
    outputs = {name: job.result() for name, job in jobs.items()}
    # 3. Each cell beside what the answers give.
    for board_set in table["sets"]:
        name = board_set["name"]
        output = outputs.get(name)
        if output is not None and output[0]["sha256"] != board_set["sha256"]:
            problems.append(f"The labels of {name} have another digest than the set.")
        checks += _check_set(table, name, output)
    return _write_report(task, number, problems, checks)


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
    table: Mapping[str, Any], name: str, output: Sequence[Mapping[str, Any]] | None
) -> Iterator[CellCheck]:
    """Yield the check of each cell of a set. output: None for a set whose labels are secret."""
    recomputed = {line["model"]: line for line in output[1:]} if output else {}
    for row in table["rows"]:
        for metric, cell in row["sets"].get(name, {}).items():
            found = recomputed.get(row["id"])
            state, message = "not checked", ""
            if output is None:
                message = "the labels are not public"
            elif found is None:
                message = "the answers are no longer public"
            elif found["error"]:
                state, message = "differs", found["error"]
            elif metric not in found["scores"]:
                message = "not computed from answers"
            else:
                message = _compare(cell, found["scores"][metric])
                state = "differs" if message else "equal"
            yield CellCheck(name, row["model"], metric, state, message)


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


def _write_report(
    task: str, number: int, problems: Sequence[str], checks: Sequence[CellCheck]
) -> dict[str, Any]:
    states = Counter(check.state for check in checks)
    lines = [f"Snapshot {number} of {task}: {states['equal']} of {len(checks)} cells are equal."]
    lines += problems
    differing_checks = [check for check in checks if check.state == "differs"]
    for check in differing_checks[:MAX_SHOWN_DIFFERENCES]:
        lines.append(f"  {check.set}, {check.model}, {check.metric}: {check.message}")
    if (rest_count := len(differing_checks) - MAX_SHOWN_DIFFERENCES) > 0:
        lines.append(f"  and {rest_count} others, which --json lists")
    reasons = Counter(check.message for check in checks if check.state == "not checked")
    lines += [f"Not checked: {count} cells, {reason}." for reason, count in reasons.items()]
    return {
        "ok": not problems and not states["differs"],
        "cells": dict(states),
        "problems": list(problems),
        "differences": [check._asdict() for check in differing_checks],
        "text": "\n".join(lines),
    }
