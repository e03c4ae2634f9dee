"""Submitted models that look at pictures: which are accepted, and what the sandbox answers."""

import base64
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from dynabench.client.commands.init import EXAMPLES
from evaluation.contract import Runnable
from evaluation.isolation.sandbox.harness import arguments
from evaluation.isolation.sandbox.harness.answering import answer_batches, read_examples
from evaluation.isolation.sandbox.harness.loading import load_classifier
from evaluation.isolation.uploads.model_folders import check_model_folder
from evaluation.task_shape import (
    UntrainableTask,
    build_runnable_shape,
    build_trainable_shape,
    describe_model_shape,
)
from evaluation.training.pictures import draw_held_out_samples
from evaluation.training.shipped import install_starter
from serving.errors import MisconfiguredError
from serving.spec import VISUAL_QUESTION_ANSWERING
from tasks.config.dynabench1 import convert_config
from tasks.config.loading import load_config
from tasks.config.schema import TaskConfig
from tasks.contexts.scenes.drawing import encode_png
from tasks.services import OFFICIAL_FOLDER
from tests.support.serving_models import tiny_model, tiny_vilt

CONFIG = load_config((OFFICIAL_FOLDER / "vqa" / "task.yaml").read_text())
HELD = draw_held_out_samples(120)


def examples() -> list[dict[str, Any]]:
    """As a run writes them."""
    return [
        {
            "id": f"x{number}",
            "inputs": {
                "image": f"data:image/png;base64,{base64.b64encode(encode_png(scene)).decode()}",
                "question": question.text,
            },
        }
        for number, (scene, question) in enumerate(HELD)
    ]


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_starter("vqa", tmp_path_factory.mktemp("home"))


def test_a_folder_can_be_run_for_the_task_but_not_trained() -> None:
    shape = build_runnable_shape(CONFIG)
    assert (shape.kind, shape.fields, shape.answer) == (
        VISUAL_QUESTION_ANSWERING,
        ("image", "question"),
        "answer",
    )
    assert describe_model_shape(CONFIG)["kind"] == VISUAL_QUESTION_ANSWERING
    with pytest.raises(UntrainableTask):
        build_trainable_shape(CONFIG)


def test_other_models_are_refused(starter: Path, tmp_path: Path) -> None:
    assert check_model_folder(starter, CONFIG) == starter
    with pytest.raises(MisconfiguredError, match="Load it as ViltForQuestionAnswering"):
        check_model_folder(tiny_model(tmp_path / "bert", "sequence-classification"), CONFIG)
    with pytest.raises(MisconfiguredError, match="the task's labels"):
        check_model_folder(tiny_vilt(tmp_path / "vilt"), CONFIG)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_harness_answers_as_the_model_server_does(
    starter: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # put back afterwards
    shape = build_runnable_shape(CONFIG)
    model = Runnable(fields=shape.fields, output=shape.answer, labels=shape.labels)
    given = arguments.build_command_line(model, folder=str(starter), inputs="-", threads=workers)
    loaded = load_classifier(arguments.read_command_line(given))
    lines = [json.dumps(each).encode() for each in examples()]
    lines.append(json.dumps({"id": "bad", "inputs": {"image": "", "question": "Is it?"}}).encode())
    read = list(read_examples(lines, loaded.codec))
    told = b"".join(answer_batches(read, loaded.codec, loaded.backend, workers=workers))
    said = {row["id"]: row for row in map(json.loads, told.splitlines())}
    assert said.keys() == {f"x{number}" for number in range(len(HELD))}, "and not the bad one"
    right = [
        said[f"x{number}"]["output"]["answer"] == row.question.answer
        for number, row in enumerate(HELD)
    ]
    assert sum(right) >= 0.7 * len(right)


DATAPERF = Path(__file__).parents[2] / "fixtures" / "dynabench1" / "dataperf.yaml"
ALONE = load_config(convert_config(DATAPERF.read_text()).config_yaml_text)


@pytest.mark.parametrize("config", [CONFIG, ALONE], ids=["asked", "alone"])
def test_the_example_of_the_client_fits_the_task(tmp_path: Path, config: TaskConfig) -> None:
    (tmp_path / "make_model.py").write_bytes((EXAMPLES / "folder" / "make_model.py").read_bytes())
    (tmp_path / "task.json").write_text(json.dumps(describe_model_shape(config)))
    lines = [json.dumps(each) for each in examples()[:5]]
    (tmp_path / "examples.jsonl").write_text("\n".join(lines))
    runpy.run_path(str(tmp_path / "make_model.py"), run_name="__main__")
    assert check_model_folder(tmp_path / "model", config) == tmp_path / "model"
