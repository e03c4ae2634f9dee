"""Classifiers of many architectures answer in batches as `model(**tokenizer(text))` does alone.

Every model is asked as a submission and as a live target on torch. ONNX, trainings and the process
take seconds each: a few of them here, all with ARCHITECTURES=all, and some in the sandbox
(`tests/docker/test_architectures.py`). `-s` prints the largest difference of each row.
"""

import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluation.contract import Outcome, Runnable
from evaluation.isolation.sandbox.harness import arguments
from evaluation.isolation.sandbox.harness.answering import iterate_all_answers
from evaluation.isolation.sandbox.harness.loading import load_classifier
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.process import ProcessRunner
from evaluation.training import fine_tune
from serving.registry import ServedModel
from serving.spec import ModelSpec
from tests.support.architectures import (
    ARCHITECTURES,
    LABELS,
    TEXTS,
    chances_of,
    check_close,
    example_lines,
    make_model,
    reference,
)

pytestmark = pytest.mark.nightly("architectures")
PAIRS = [(text, TEXTS[number % 4]) for number, text in enumerate(TEXTS)]
EVERY = [*ARCHITECTURES]
IN_PAIRS = ["bert", "roberta", "xlnet", "deberta-v2", "funnel", "fnet", "llama", EVERY[1]]
UNFILLED = "gpt2 whose tokenizer has no padding"
HAS_ALL = os.environ.get("ARCHITECTURES") == "all"
SLOW = EVERY if HAS_ALL else [UNFILLED]
TRAINED = EVERY if HAS_ALL else [UNFILLED, "fnet", "roberta", "big_bird"]
Chances = Sequence[Sequence[float]]


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading says in the environment that OpenMP has one thread: not to the tests after these."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")


class Made:
    """The models, each made when it is first asked for, and what each text gets alone."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._alone: dict[tuple[str, bool], Chances] = {}

    def folder(self, name: str) -> Path:
        folder = self._place / name.replace(" ", "-")
        return folder if folder.exists() else make_model(name, folder)

    def alone(self, name: str, *, pairs: bool = False) -> Chances:
        if (name, pairs) not in self._alone:
            ask = reference(self.folder(name), ARCHITECTURES[name].limit)
            rows = [ask(*pair) for pair in PAIRS] if pairs else [ask(text) for text in TEXTS]
            assert max(map(spread, zip(*rows, strict=True))) > 0.01  # texts get different answers
            self._alone[name, pairs] = rows
        return self._alone[name, pairs]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("architectures"))


def spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


def submitted(folder: Path, rows: Sequence[dict[str, str]]) -> Chances:
    model = Runnable(fields=tuple(rows[0]), output="label", labels=LABELS)
    asked = arguments.read_command_line(
        arguments.build_command_line(model, folder=str(folder), inputs="-", threads=2)
    )
    return chances_of([*iterate_all_answers(example_lines(rows), load_classifier(asked))])


def served(folder: Path, place: Path, backend: str, rows: Sequence[dict[str, str]]) -> Any:
    """The chances of a live target, asked for all rows at once, and what it says of itself."""
    spec = ModelSpec("m", str(folder), backend=backend, fields=tuple(rows[0]))
    model = ServedModel(spec, place, max_queued=64)
    try:
        answers = model.submit(rows, deadline=time.monotonic() + 60).result()
    finally:
        model.close()
    return [[answer.prob[label] for label in LABELS] for answer in answers], model.info


@pytest.mark.parametrize("name", EVERY)
def test_a_submission_and_a_target_answer_as_the_model_alone(
    name: str, made: Made, tmp_path: Path
) -> None:
    rows = [{"text": text} for text in TEXTS]
    check_close(f"{name}, submission", submitted(made.folder(name), rows), made.alone(name))
    found, _ = served(made.folder(name), tmp_path, "torch", rows)
    check_close(f"{name}, torch", found, made.alone(name))


@pytest.mark.parametrize("name", EVERY if HAS_ALL else IN_PAIRS)
def test_pairs_are_answered_as_the_model_alone(name: str, made: Made) -> None:
    rows = [{"premise": one, "hypothesis": other} for one, other in PAIRS]
    check_close(f"{name}, pairs", submitted(made.folder(name), rows), made.alone(name, pairs=True))


@pytest.mark.parametrize("fields", [("hypothesis", "premise"), ("claim", "source")])
def test_a_model_gets_its_fields_in_the_order_that_its_folder_names(
    fields: tuple[str, str], made: Made, tmp_path: Path
) -> None:
    folder = shutil.copytree(made.folder("roberta"), tmp_path / "model")
    (folder / "dynabench.json").write_text(json.dumps({"fields": fields}))
    names = ("source", "claim") if "claim" in fields else ("premise", "hypothesis")
    rows = [dict(zip(names, pair, strict=True)) for pair in PAIRS]
    ask = reference(folder, ARCHITECTURES["roberta"].limit, cut="only_second")
    check_close("roberta, fields exchanged", submitted(folder, rows), [ask(b, a) for a, b in PAIRS])


@pytest.mark.parametrize("name", SLOW)
def test_a_target_on_onnx_answers_as_the_model_alone(name: str, made: Made, tmp_path: Path) -> None:
    found, info = served(made.folder(name), tmp_path, "onnx", [{"text": text} for text in TEXTS])
    check_close(f"{name}, {info['fingerprint']['backend']}", found, made.alone(name))


@pytest.mark.parametrize("name", SLOW)
def test_a_submission_in_a_process_answers_as_the_model_alone(
    name: str, made: Made, tmp_path: Path
) -> None:
    inputs = tmp_path / "examples.jsonl"
    inputs.write_bytes(b"".join(example_lines([{"text": text} for text in TEXTS])))
    model = Runnable(made.folder(name), fields=("text",), output="label", labels=LABELS)
    answers: list[bytes] = []
    ending = ProcessRunner().run(model, inputs, Limits(), take=answers.append, beat=lambda: None)
    assert ending.outcome == Outcome.OK, ending.sentence
    check_close(f"{name}, process", chances_of(answers), made.alone(name))


@pytest.mark.parametrize("name", TRAINED)
def test_what_is_trained_from_it_answers_as_the_trained_model_alone(
    name: str, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fine_tune, "has_fast_bfloat16", lambda: False)  # rounds to two digits
    rows = [
        {"text": text, "label": LABELS[number % 3], "group": str(number)}
        for number, text in enumerate(TEXTS)
    ]
    options = fine_tune.TrainingOptions(LABELS, epochs=1, batch_size=4, max_length=4096)
    fine_tune.train(
        rows, kind="sequence-classification", base=made.folder(name),
        output_dir=tmp_path / "trained", options=options, progress=lambda *_: None,
    )  # fmt: skip
    ask = reference(tmp_path / "trained", ARCHITECTURES[name].limit)
    wanted = [ask(text) for text in TEXTS]
    reading = fine_tune.Reading("sequence-classification", LABELS, None)
    told = fine_tune.answer_texts(tmp_path / "trained", rows, reading)
    check_close(
        f"{name}, training", [[one.prob[label] for label in LABELS] for one in told], wanted
    )
    check_close(f"{name}, trained", submitted(tmp_path / "trained", rows_of(rows)), wanted)


def rows_of(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    return [{"text": row["text"]} for row in rows]
