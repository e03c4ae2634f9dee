"""The starter models: one small target for each official task, trained from seeds or scenes.

Runs without Django too: `python -m evaluation.training.starters --home var`.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
from safetensors.numpy import load_file, save_file

from evaluation.seeds import HELD_OUT_SHARE, seed_rows, split_held_out
from evaluation.training.calibration import (
    ScoredRow,
    expected_calibration_error,
    fit_temperature,
    negative_log_likelihood,
    restore_scores,
    soften_head,
)
from evaluation.training.fine_tune import (
    CODE_VERSION,
    Progress,
    TrainingOptions,
    dev_part,
    evaluate,
    train,
)
from evaluation.training.low_rank import squeeze
from evaluation.training.pictures import (
    CALIBRATION_SEED,
    PictureOptions,
    digest_of_samples,
    held_out_samples,
    score_picture_rows,
    score_pictures,
    train_pictures,
)
from evaluation.training.shipped import (
    DELTA,
    ENCODER,
    MODEL,
    PROCESSOR,
    REPORT,
    SETTINGS,
    TOKENIZER,
    encoder,
    encoder_weights,
    install_starter,
    read_report,
    shipped_folder,
    unpack,
)
from serving.backends import cores, export_onnx
from serving.spec import PAIR, SEQUENCE, SPAN, ModelSpec, open_folder

HELD_OUT_QUESTIONS = 2000
CALIBRATION_VERSION = "1"
"""Raise it when a change of this code changes the temperatures that come out."""


@dataclass(frozen=True)
class Starter:
    """The kind of a task's starter model and the options of its training.

    `rank` is the rank of a matrix's shipped change; all starters together may take 3 MB.
    """

    kind: str
    options: TrainingOptions
    rank: int = 14


def _options(learning_rate: float = 2e-4, **changes: Any) -> TrainingOptions:
    return TrainingOptions(
        trained_on="the seed rows of the official task", learning_rate=learning_rate, **changes
    )


STARTERS = {
    "nli": Starter(PAIR, _options(labels=("entailment", "neutral", "contradiction"), epochs=1)),
    "qa": Starter(SPAN, _options(epochs=6, max_length=384, window=128, dev_share=0.05), rank=21),
    "sentiment": Starter(
        SEQUENCE,
        _options(learning_rate=1e-4, labels=("positive", "negative", "neutral"), epochs=4),
    ),
    "hate-speech": Starter(SEQUENCE, _options(labels=("hate", "not-hate"), epochs=4)),
}
PICTURE_STARTERS = {"vqa": PictureOptions()}
"""Trained from nothing, on scenes that are drawn during the training."""
CODES = (*STARTERS, *PICTURE_STARTERS)


def recipe(code: str) -> str:
    """Return a digest of everything that a training depends on, such as its seed file."""
    ingredients: list[Any] = [CODE_VERSION]
    if code in PICTURE_STARTERS:
        ingredients += [asdict(PICTURE_STARTERS[code]), digest_of_samples()]
    else:
        starter = STARTERS[code]
        ingredients = [
            seed_rows(code),
            CODE_VERSION,
            asdict(starter),
            version(ENCODER),
            HELD_OUT_SHARE,
        ]
    return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:16]


def is_fresh(code: str) -> bool:
    """Return whether the shipped starter of a task was trained by the current recipe."""
    path = shipped_folder(code)
    return (path / REPORT).exists() and read_report(path)["recipe"] == recipe(code)


def is_calibrated(code: str) -> bool:
    """Return whether the head of the shipped starter was calibrated by the current code."""
    calibration = read_report(shipped_folder(code)).get("calibration")
    return calibration is not None and calibration["version"] == CALIBRATION_VERSION


def train_starter(code: str, target: Path, progress: Progress) -> None:
    """Train a task's starter and replace its shipped folder.

    Limits torch to one thread for the rest of the process, so that the weights do not depend on the
    number of cores.
    """
    import torch

    # Sums of floats depend on how they are split among threads.
    torch.set_num_threads(1)
    with TemporaryDirectory() as scratch:
        full = Path(scratch, "full")
        if code in PICTURE_STARTERS:
            report = train_pictures(PICTURE_STARTERS[code], full, progress)
            return ship_pictures(code, full, target, report)
        starter = STARTERS[code]
        found = train(
            split_held_out(seed_rows(code))[0],
            kind=starter.kind,
            base=encoder(),
            output_dir=full,
            options=starter.options,
            progress=progress,
        )
        report = asdict(found)
        temperature = report.pop("temperature")
        # What is squeezed is calibrated again, from the scores before the head was divided.
        ship(code, full, target, {**report, "calibration": {"temperature": temperature}})


def ship(code: str, full: Path, target: Path, report: Mapping[str, Any]) -> None:
    """Compress a trained folder into the shipped one, and add the figures of the merged model.

    Temporary folders are created next to `full`.
    """
    shipped = full.with_name("shipped")
    shipped.mkdir()
    parts = squeeze(encoder_weights(encoder()), load_file(full / MODEL), STARTERS[code].rank)
    save_file(parts, shipped / DELTA)
    for name in SETTINGS:
        shutil.copyfile(full / name, shipped / name)
    _finish(code, shipped, target, report)


def ship_pictures(code: str, full: Path, target: Path, report: Mapping[str, Any]) -> None:
    """Compress a model without an encoder to 16-bit floats; otherwise as `ship`."""
    shipped = full.with_name("shipped")
    shipped.mkdir()
    # Half the bytes in the repository.
    halves = {name: values.astype(np.float16) for name, values in load_file(full / MODEL).items()}
    save_file(halves, shipped / MODEL)
    for name in (*SETTINGS, *TOKENIZER, PROCESSOR):
        shutil.copyfile(full / name, shipped / name)
    _finish(code, shipped, target, report)


def calibrate_starter(code: str, target: Path) -> None:
    """Fit the temperature of a shipped folder, without training, and replace the folder."""
    with TemporaryDirectory() as scratch:
        shipped = Path(scratch, "shipped")
        shutil.copytree(target, shipped)
        report = read_report(shipped)
        _calibrate(code, shipped, report)
        shutil.rmtree(target)
        shutil.copytree(shipped, target)


def _finish(code: str, shipped: Path, target: Path, report: Mapping[str, Any]) -> None:
    """Calibrate the model, add the report and the graph without weights, and replace `target`."""
    from evaluation.training.graph import keep_graph

    merged = _calibrate(code, shipped, {"task": code, **report, "recipe": recipe(code)})
    _write_report(shipped, {**read_report(shipped), **_held_out_scores(code, merged)})
    exports = shipped.with_name("exports")
    spec = ModelSpec(name=code, source=str(merged))
    export_onnx(spec, open_folder(spec), exports=exports)
    keep_graph(exports, load_file(merged / MODEL), shipped)
    # Only now: until everything is made the former starter stays.
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(shipped, target)


def _calibrate(code: str, shipped: Path, report: Mapping[str, Any]) -> Path:
    """Divide the head by its temperature and write the report; return the unpacked folder.

    The temperature is fitted on rows that were not trained on: those that chose the epoch, or
    questions on scenes of another seed. The held-out rows are used only for measuring.
    """
    raw, merged = (shipped.with_name(name) for name in ("raw", "merged"))
    for folder in (raw, merged):
        folder.mkdir()
    unpack(shipped, raw)
    earlier = report.get("calibration", {}).get("temperature", 1.0)
    fit_rows, held_rows = _scored(code, raw)
    fit_rows, held_rows = restore_scores(fit_rows, earlier), restore_scores(held_rows, earlier)
    temperature = fit_temperature(fit_rows)
    if temperature != earlier:
        _soften(code, shipped, temperature / earlier)
    figures = {
        **report,
        "weights_sha256": unpack(shipped, merged),
        "calibration": {
            "version": CALIBRATION_VERSION,
            "rows": len(fit_rows),
            "temperature": temperature,
            "before": confidence_figures(held_rows),
            "after": confidence_figures(held_rows, temperature),
        },
    }
    _write_report(shipped, figures)
    return merged


def _write_report(folder: Path, figures: Mapping[str, Any]) -> None:
    (folder / REPORT).write_text(json.dumps(figures, indent=2) + "\n")


def _soften(code: str, shipped: Path, temperature: float) -> None:
    """Divide the head of a shipped folder by a temperature."""
    if code in PICTURE_STARTERS:
        file, head = shipped / MODEL, "classifier.3"
    elif STARTERS[code].kind == SPAN:
        file, head = shipped / DELTA, "whole/qa_outputs"
    else:
        file, head = shipped / DELTA, "whole/classifier"
    save_file(soften_head(load_file(file), head, temperature), file)


def confidence_figures(rows: Sequence[ScoredRow], temperature: float = 1.0) -> dict[str, float]:
    """Return expected calibration error and negative log-likelihood, by their names in reports."""
    return {
        "ece": round(expected_calibration_error(rows, temperature), 4),
        "nll": round(negative_log_likelihood(rows, temperature), 4),
    }


def _scored(code: str, folder: Path) -> tuple[list[ScoredRow], list[ScoredRow]]:
    """Return the scores of the rows for fitting a temperature, and of the held-out rows."""
    if code in PICTURE_STARTERS:
        fit_samples = held_out_samples(HELD_OUT_QUESTIONS, CALIBRATION_SEED)
        held_samples = held_out_samples(HELD_OUT_QUESTIONS)
        fit_rows = score_picture_rows(folder, fit_samples)
        return fit_rows, score_picture_rows(folder, held_samples)
    from evaluation.training.confidence import score_rows

    rest, held_rows = split_held_out(seed_rows(code))
    dev = dev_part(rest, STARTERS[code].options)[1]
    return score_rows(folder, dev), score_rows(folder, held_rows)


def _held_out_scores(code: str, folder: Path) -> dict[str, Any]:
    """Return the report's figures on the held-out rows."""
    if code in PICTURE_STARTERS:
        samples = held_out_samples(HELD_OUT_QUESTIONS)
        return {"held_out_rows": len(samples), "held_out": score_pictures(folder, samples)}
    rows = split_held_out(seed_rows(code))[1]
    return {"held_out_rows": len(rows), "held_out": evaluate(folder, rows)}


def add_arguments(parser: argparse.ArgumentParser, home: Path) -> None:
    """Add the arguments of the command line. home: the default of --home."""
    parser.add_argument("--home", type=Path, default=home, help="folder that keeps the models")
    parser.add_argument("--task", choices=CODES, help="only this task")
    parser.add_argument("--force", action="store_true", help="train again")
    parser.add_argument("--json", action="store_true", help="print the reports as JSON")


def run(home: Path, task: str | None, *, force: bool, as_json: bool) -> None:
    """Train the starters whose recipe has changed, install all, and print the held-out figures.

    Starters whose calibration is missing or outdated are only calibrated, which takes seconds. A
    progress bar goes to stderr.
    """
    codes = [task] if task else list(CODES)
    _train_all([code for code in codes if force or not is_fresh(code)])
    for code in codes:
        if not is_calibrated(code):
            calibrate_starter(code, shipped_folder(code))
    folders = [install_starter(code, home) for code in codes]
    reports = []
    for folder in folders:
        reports.append({**read_report(folder), "folder": str(folder.resolve())})
    if as_json:
        print(json.dumps(reports, indent=2))
        return
    for report in reports:
        scores = ", ".join(f"{name} {value:.2f}" for name, value in report["held_out"].items())
        print(f"{report['task']}: {scores} on {report['held_out_rows']} held-out rows")


def _train_all(codes: Sequence[str]) -> None:
    """Train the starters in parallel, one process per core.

    Raises RuntimeError if one fails; its process has printed the reason, and the others end with
    this process.
    """
    from tqdm import tqdm

    waiting, shares, words = list(codes), dict.fromkeys(codes, 0.0), dict.fromkeys(codes, "")
    running: dict[Connection, tuple[str, SpawnProcess]] = {}
    layout = "starter models: {percentage:3.0f}% |{bar}| {postfix}"
    with tqdm(total=len(codes), bar_format=layout) as bar:
        while waiting or running:
            # A process for each core.
            while waiting and len(running) < cores():
                code = waiting.pop(0)
                steps, process = _start(code)
                running[steps] = code, process
            for steps in cast("list[Connection]", wait(list(running))):
                code, process = running[steps]
                try:
                    shares[code], words[code] = steps.recv()
                # The end of the pipe is the end of the process.
                except EOFError:
                    process.join()
                    if process.exitcode:
                        raise RuntimeError(f"The starter model of {code} failed.") from None
                    shares[code], words[code] = 1.0, ""
                    del running[steps]
            bar.n = sum(shares.values())
            messages = [f"{code} {words[code]}" for code in codes if words[code]]
            bar.set_postfix_str("; ".join(messages))


def _start(code: str) -> tuple[Connection, SpawnProcess]:
    """Start a process that trains one starter; return the pipe of its progress and the process."""
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    steps, sink = context.Pipe(duplex=False)
    process = context.Process(target=_train_one, args=(code, sink), daemon=True)
    process.start()
    sink.close()  # so that the pipe ends when the child does
    return steps, process


def _train_one(code: str, steps: Connection) -> None:
    """Train one starter in a separate process, which ends when the pipe is closed."""

    def tell(done: int, total: int, message: str) -> None:
        steps.send((done / total, message.partition(":")[0]))

    train_starter(code, shipped_folder(code), tell)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train the starter models.")
    add_arguments(parser, Path(os.environ.get("DYNABENCH_HOME") or "var"))
    arguments = parser.parse_args()
    run(arguments.home, arguments.task, force=arguments.force, as_json=arguments.json)
