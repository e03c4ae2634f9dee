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

from evaluation.seeds import HELD_OUT_SHARE, read_seed_rows, split_held_out
from evaluation.training.calibration import (
    ScoredRow,
    compute_calibration_error,
    compute_negative_log_likelihood,
    fit_temperature,
    restore_scores,
    soften_head,
)
from evaluation.training.fine_tune import (
    CODE_VERSION,
    Progress,
    TrainingOptions,
    evaluate_folder,
    split_dev_rows,
    train,
)
from evaluation.training.low_rank import compress_change
from evaluation.training.pictures import (
    CALIBRATION_SEED,
    PictureOptions,
    compute_accuracy_by_kind,
    compute_samples_digest,
    draw_held_out_samples,
    score_picture_rows,
    train_pictures,
)
from evaluation.training.shipped import (
    DELTA_FILE,
    ENCODER_PACKAGE,
    PROCESSOR_FILE,
    REPORT_FILE,
    SETTINGS_FILES,
    TOKENIZER_FILES,
    WEIGHTS_FILE,
    find_encoder,
    find_shipped_folder,
    install_starter,
    load_encoder_weights,
    read_report,
    unpack_starter,
)
from serving.backends import count_cores, export_onnx
from serving.spec import PAIR, SEQUENCE, SPAN, ModelSpec, open_folder

HELD_OUT_QUESTIONS = 2000
CALIBRATION_VERSION = "1"
"""The version of the calibration. Raise it when a change of this code changes temperatures."""


@dataclass(frozen=True)
class Starter:
    """The kind of a task's starter model and the options of its training.

    `rank` is the rank of a matrix's shipped change; all starters together may take 3 MB.
    """

    kind: str
    options: TrainingOptions
    rank: int = 14


def _make_options(learning_rate: float = 2e-4, **changes: Any) -> TrainingOptions:
    return TrainingOptions(
        trained_on="the seed rows of the official task", learning_rate=learning_rate, **changes
    )


STARTERS = {
    "nli": Starter(
        PAIR, _make_options(labels=("entailment", "neutral", "contradiction"), epochs=1)
    ),
    "qa": Starter(
        SPAN, _make_options(epochs=6, max_length=384, window=128, dev_share=0.05), rank=21
    ),
    "sentiment": Starter(
        SEQUENCE,
        _make_options(learning_rate=1e-4, labels=("positive", "negative", "neutral"), epochs=4),
    ),
    "hate-speech": Starter(SEQUENCE, _make_options(labels=("hate", "not-hate"), epochs=4)),
}
PICTURE_STARTERS = {"vqa": PictureOptions()}
"""Starters that are trained from scratch, on scenes drawn during training."""
STARTER_CODES = (*STARTERS, *PICTURE_STARTERS)


def compute_recipe(code: str) -> str:
    """Return a digest of all that determines a starter's training, such as its seed file."""
    ingredients: list[Any] = [CODE_VERSION]
    if code in PICTURE_STARTERS:
        ingredients += [asdict(PICTURE_STARTERS[code]), compute_samples_digest()]
    else:
        starter = STARTERS[code]
        ingredients = [
            read_seed_rows(code),
            CODE_VERSION,
            asdict(starter),
            version(ENCODER_PACKAGE),
            HELD_OUT_SHARE,
        ]
    return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:16]


def is_starter_fresh(code: str) -> bool:
    """Return whether the shipped starter of a task was trained by the current recipe."""
    path = find_shipped_folder(code)
    return (path / REPORT_FILE).exists() and read_report(path)["recipe"] == compute_recipe(code)


def is_starter_calibrated(code: str) -> bool:
    """Return whether the head of the shipped starter was calibrated by the current code."""
    calibration = read_report(find_shipped_folder(code)).get("calibration")
    return calibration is not None and calibration["version"] == CALIBRATION_VERSION


def train_starter(code: str, target: Path, progress: Progress) -> None:
    """Train a task's starter and replace its shipped folder.

    Limits torch to one thread for the rest of the process. So the weights do not depend on the
    number of cores.
    """
    import torch

    # Sums of floats depend on how they are split among threads.
    torch.set_num_threads(1)
    with TemporaryDirectory() as scratch:
        full_folder = Path(scratch, "full")
        if code in PICTURE_STARTERS:
            report = train_pictures(PICTURE_STARTERS[code], full_folder, progress)
            return ship_picture_starter(code, full_folder, target, report)
        starter = STARTERS[code]
        training_report = train(
            split_held_out(read_seed_rows(code))[0],
            kind=starter.kind,
            base=find_encoder(),
            output_dir=full_folder,
            options=starter.options,
            progress=progress,
        )
        report = asdict(training_report)
        temperature = report.pop("temperature")
        # The compressed model is calibrated again, from the scores before the head was divided.
        ship_starter(
            code, full_folder, target, {**report, "calibration": {"temperature": temperature}}
        )


def ship_starter(code: str, full_folder: Path, target: Path, report: Mapping[str, Any]) -> None:
    """Compress a trained folder into the shipped one, and add the figures of the merged model.

    Temporary folders are created next to `full_folder`.
    """
    shipped_folder = full_folder.with_name("shipped")
    shipped_folder.mkdir()
    compressed_weights = compress_change(
        load_encoder_weights(find_encoder()),
        load_file(full_folder / WEIGHTS_FILE),
        STARTERS[code].rank,
    )
    save_file(compressed_weights, shipped_folder / DELTA_FILE)
    for name in SETTINGS_FILES:
        shutil.copyfile(full_folder / name, shipped_folder / name)
    _finish_starter(code, shipped_folder, target, report)


def ship_picture_starter(
    code: str, full_folder: Path, target: Path, report: Mapping[str, Any]
) -> None:
    """Compress a model without an encoder to 16-bit floats, and finish it like `ship_starter`."""
    shipped_folder = full_folder.with_name("shipped")
    shipped_folder.mkdir()
    # Half the bytes in the repository.
    halves = {
        name: values.astype(np.float16)
        for name, values in load_file(full_folder / WEIGHTS_FILE).items()
    }
    save_file(halves, shipped_folder / WEIGHTS_FILE)
    for name in (*SETTINGS_FILES, *TOKENIZER_FILES, PROCESSOR_FILE):
        shutil.copyfile(full_folder / name, shipped_folder / name)
    _finish_starter(code, shipped_folder, target, report)


def calibrate_starter(code: str, target: Path) -> None:
    """Fit the temperature of a shipped folder, without training, and replace the folder."""
    with TemporaryDirectory() as scratch:
        shipped_folder = Path(scratch, "shipped")
        shutil.copytree(target, shipped_folder)
        report = read_report(shipped_folder)
        _calibrate_folder(code, shipped_folder, report)
        shutil.rmtree(target)
        shutil.copytree(shipped_folder, target)


def _finish_starter(
    code: str, shipped_folder: Path, target: Path, report: Mapping[str, Any]
) -> None:
    """Calibrate the model, add the report and the graph without weights, and replace `target`."""
    from evaluation.training.graph import write_graph

    merged_folder = _calibrate_folder(
        code, shipped_folder, {"task": code, **report, "recipe": compute_recipe(code)}
    )
    _write_report(
        shipped_folder,
        {**read_report(shipped_folder), **_compute_held_out_scores(code, merged_folder)},
    )
    exports = shipped_folder.with_name("exports")
    spec = ModelSpec(name=code, source=str(merged_folder))
    export_onnx(spec, open_folder(spec), export_folder=exports)
    write_graph(exports, load_file(merged_folder / WEIGHTS_FILE), shipped_folder)
    # Only now, so that the old starter stays until everything is ready.
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(shipped_folder, target)


def _calibrate_folder(code: str, shipped_folder: Path, report: Mapping[str, Any]) -> Path:
    """Divide the head by its temperature and write the report; return the unpacked folder.

    The temperature is fitted on rows that were not trained on: those that chose the epoch, or
    questions on scenes of another seed. The held-out rows are used only for measuring.
    """
    raw_folder, merged_folder = (shipped_folder.with_name(name) for name in ("raw", "merged"))
    for folder in (raw_folder, merged_folder):
        folder.mkdir()
    unpack_starter(shipped_folder, raw_folder)
    earlier_temperature = report.get("calibration", {}).get("temperature", 1.0)
    fit_rows, held_rows = _score_rows(code, raw_folder)
    fit_rows, held_rows = (
        restore_scores(fit_rows, earlier_temperature),
        restore_scores(held_rows, earlier_temperature),
    )
    temperature = fit_temperature(fit_rows)
    if temperature != earlier_temperature:
        _soften_head(code, shipped_folder, temperature / earlier_temperature)
    figures = {
        **report,
        "weights_sha256": unpack_starter(shipped_folder, merged_folder),
        "calibration": {
            "version": CALIBRATION_VERSION,
            "rows": len(fit_rows),
            "temperature": temperature,
            "before": compute_confidence_figures(held_rows),
            "after": compute_confidence_figures(held_rows, temperature),
        },
    }
    _write_report(shipped_folder, figures)
    return merged_folder


def _write_report(folder: Path, figures: Mapping[str, Any]) -> None:
    (folder / REPORT_FILE).write_text(json.dumps(figures, indent=2) + "\n")


def _soften_head(code: str, shipped_folder: Path, temperature: float) -> None:
    """Divide the head of a shipped folder by a temperature."""
    if code in PICTURE_STARTERS:
        file, head = shipped_folder / WEIGHTS_FILE, "classifier.3"
    elif STARTERS[code].kind == SPAN:
        file, head = shipped_folder / DELTA_FILE, "whole/qa_outputs"
    else:
        file, head = shipped_folder / DELTA_FILE, "whole/classifier"
    save_file(soften_head(load_file(file), head, temperature), file)


def compute_confidence_figures(
    rows: Sequence[ScoredRow], temperature: float = 1.0
) -> dict[str, float]:
    """Return expected calibration error and negative log-likelihood, by their names in reports.

    temperature: the number by which the scores are divided first.
    """
    return {
        "ece": round(compute_calibration_error(rows, temperature), 4),
        "nll": round(compute_negative_log_likelihood(rows, temperature), 4),
    }


def _score_rows(code: str, folder: Path) -> tuple[list[ScoredRow], list[ScoredRow]]:
    """Return the scores of the rows for fitting a temperature, and of the held-out rows."""
    if code in PICTURE_STARTERS:
        fit_samples = draw_held_out_samples(HELD_OUT_QUESTIONS, CALIBRATION_SEED)
        held_samples = draw_held_out_samples(HELD_OUT_QUESTIONS)
        fit_rows = score_picture_rows(folder, fit_samples)
        return fit_rows, score_picture_rows(folder, held_samples)
    from evaluation.training.confidence import score_rows

    training_rows, held_rows = split_held_out(read_seed_rows(code))
    dev = split_dev_rows(training_rows, STARTERS[code].options)[1]
    return score_rows(folder, dev), score_rows(folder, held_rows)


def _compute_held_out_scores(code: str, folder: Path) -> dict[str, Any]:
    """Return the report's figures on the held-out rows."""
    if code in PICTURE_STARTERS:
        samples = draw_held_out_samples(HELD_OUT_QUESTIONS)
        return {
            "held_out_rows": len(samples),
            "held_out": compute_accuracy_by_kind(folder, samples),
        }
    rows = split_held_out(read_seed_rows(code))[1]
    return {"held_out_rows": len(rows), "held_out": evaluate_folder(folder, rows)}


def add_arguments(parser: argparse.ArgumentParser, home: Path) -> None:
    """Add the arguments of the command line. home: the default of --home."""
    parser.add_argument("--home", type=Path, default=home, help="folder that keeps the models")
    parser.add_argument("--task", choices=STARTER_CODES, help="only this task")
    parser.add_argument("--force", action="store_true", help="train again")
    parser.add_argument("--json", action="store_true", help="print the reports as JSON")


def train_and_install_starters(home: Path, task: str | None, *, force: bool, as_json: bool) -> None:
    """Train the starters whose recipe has changed, install all, and print the held-out figures.

    Starters whose calibration is missing or outdated are only calibrated, which takes seconds. A
    progress bar goes to stderr.
    """
    codes = [task] if task else list(STARTER_CODES)
    _train_all([code for code in codes if force or not is_starter_fresh(code)])
    for code in codes:
        if not is_starter_calibrated(code):
            calibrate_starter(code, find_shipped_folder(code))
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

    waiting_codes, shares, text_by_code = (
        list(codes),
        dict.fromkeys(codes, 0.0),
        dict.fromkeys(codes, ""),
    )
    running_processes: dict[Connection, tuple[str, SpawnProcess]] = {}
    layout = "starter models: {percentage:3.0f}% |{bar}| {postfix}"
    with tqdm(total=len(codes), bar_format=layout) as bar:
        while waiting_codes or running_processes:
            # One process for each core.
            while waiting_codes and len(running_processes) < count_cores():
                code = waiting_codes.pop(0)
                steps, process = _start_process(code)
                running_processes[steps] = code, process
            for steps in cast("list[Connection]", wait(list(running_processes))):
                code, process = running_processes[steps]
                try:
                    shares[code], text_by_code[code] = steps.recv()
                # The pipe ends when the process ends.
                except EOFError:
                    process.join()
                    if process.exitcode:
                        raise RuntimeError(f"The starter model of {code} failed.") from None
                    shares[code], text_by_code[code] = 1.0, ""
                    del running_processes[steps]
            bar.n = sum(shares.values())
            messages = [f"{code} {text_by_code[code]}" for code in codes if text_by_code[code]]
            bar.set_postfix_str("; ".join(messages))


def _start_process(code: str) -> tuple[Connection, SpawnProcess]:
    """Start a process that trains one starter; return the pipe of its progress and the process."""
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    steps, sink = context.Pipe(duplex=False)
    process = context.Process(target=_train_in_process, args=(code, sink), daemon=True)
    process.start()
    sink.close()  # so that the pipe ends when the child does
    return steps, process


def _train_in_process(code: str, steps: Connection) -> None:
    """Train one starter in a separate process, which ends when the pipe is closed."""

    def report_progress(done: int, total: int, message: str) -> None:
        steps.send((done / total, message.partition(":")[0]))

    train_starter(code, find_shipped_folder(code), report_progress)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train the starter models.")
    add_arguments(parser, Path(os.environ.get("DYNABENCH_HOME") or "var"))
    arguments = parser.parse_args()
    train_and_install_starters(
        arguments.home, arguments.task, force=arguments.force, as_json=arguments.json
    )
