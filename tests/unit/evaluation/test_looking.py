"""The model that learns from submitted pictures: what it finds, in the sandbox and served."""

import base64
import json
import time
from argparse import Namespace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from evaluation.contract import Runnable
from evaluation.isolation.sandbox.harness import arguments
from evaluation.isolation.sandbox.harness.answering import stream_answers
from evaluation.isolation.sandbox.harness.loading import load_classifier
from evaluation.isolation.uploads.model_folders import check_model_folder, digest_folder
from evaluation.submissions.selectors import WHITE_PIXEL
from evaluation.task_shape import build_runnable_shape, describe_model_shape
from evaluation.training.picture_learning import learn_pictures
from serving.errors import MisconfiguredError
from serving.registry import ServedModel
from serving.spec import IMAGE_CLASSIFICATION, ModelSpec
from tasks.config.dynabench1 import convert_config
from tasks.config.loading import load_config
from tasks.contexts.scenes.drawing import encode_png
from tasks.contexts.scenes.scene import make_scenes
from tests.support.serving_models import tiny_model

pytestmark = pytest.mark.nightly("starters")

SHAPE = Path(__file__).parents[2] / "fixtures" / "dynabench1" / "dataperf.yaml"
CONFIG = load_config(convert_config(SHAPE.read_text()).config_yaml_text)
SCENES = [*islice(make_scenes(5), 180)]
LABELLED = [(encode_png(scene), str(int(len(scene.figures) > 5))) for scene in SCENES]
"""Pictures of few shapes, and of many."""


class InMemory:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def open(self, mode: str) -> BytesIO:
        return BytesIO(self.data)


ROWS = [(InMemory(data), label) for data, label in LABELLED[:120]]


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned") / "model"
    learn_pictures(ROWS, ("0", "1"), folder)
    return folder


def coded(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def asked(folder: Path) -> Namespace:
    shape = build_runnable_shape(CONFIG)
    model = Runnable(fields=shape.fields, output=shape.answer, labels=shape.labels)
    return arguments.read_command_line(
        arguments.build_command_line(model, folder=str(folder), inputs="-", threads=1)
    )


def answers_to(pictures: list[str], model: Any) -> list[Any]:
    lines = [
        json.dumps({"id": str(number), "inputs": {"image": picture}}).encode()
        for number, picture in enumerate(pictures)
    ]
    return [json.loads(line) for line in stream_answers(lines, model)]


def test_it_finds_what_its_rows_teach_and_the_server_answers_alike(
    learned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # put back afterwards
    assert check_model_folder(learned, CONFIG) == learned
    assert describe_model_shape(CONFIG)["kind"] == IMAGE_CLASSIFICATION
    held = LABELLED[120:]
    said = answers_to([coded(data) for data, _ in held], load_classifier(asked(learned)))
    right = [one["output"]["label"] == label for one, (_, label) in zip(said, held, strict=True)]
    assert sum(right) >= 0.8 * len(right)
    served = ServedModel(ModelSpec("looks", str(learned)), tmp_path / "cache", max_queued=8)
    try:
        row = {"image": coded(held[0][0])}
        (answer,) = served.submit([row], deadline=time.monotonic() + 60).result(60)
        assert answer.prob == pytest.approx(said[0]["prob"], abs=1e-3)
    finally:
        served.close()
    declined, white = answers_to(["", WHITE_PIXEL], load_classifier(asked(learned)))
    assert declined["output"] is None
    assert white["output"]["label"] in ("0", "1")  # where a task has no picture to show


def test_the_same_rows_give_the_same_weights_and_others_give_others(
    learned: Path, tmp_path: Path
) -> None:
    def again(name: str, rows: Any) -> str:
        learn_pictures(rows, ("0", "1"), tmp_path / name)
        return digest_folder(tmp_path / name, lambda: None)

    assert again("same", ROWS) == digest_folder(learned, lambda: None)
    assert again("fewer", ROWS[:40]) != digest_folder(learned, lambda: None)


def test_folders_that_look_at_no_picture_are_refused(learned: Path, tmp_path: Path) -> None:
    with pytest.raises(MisconfiguredError, match="ForImageClassification"):
        check_model_folder(tiny_model(tmp_path / "bert", "sequence-classification"), CONFIG)
    (learned / "preprocessor_config.json").rename(tmp_path / "kept.json")
    try:
        with pytest.raises(MisconfiguredError, match="size"):
            check_model_folder(learned, CONFIG)
    finally:
        (tmp_path / "kept.json").rename(learned / "preprocessor_config.json")
