"""The target of vqa: good at what its grammar asks, easily fooled by what people ask."""

import base64
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from evaluation import seeds
from evaluation.training import reference, reference_pictures, shipped, starters
from evaluation.training.calibration import ScoredRow, compute_calibration_error
from evaluation.training.pictures import (
    PictureOptions,
    PictureSample,
    answer_pictures,
    compute_accuracy_by_kind,
    draw_held_out_samples,
    draw_samples,
    train_pictures,
)
from serving import backends
from serving.codecs import Answer
from serving.registry import ServedModel
from serving.spec import ModelSpec
from tasks.contexts.scenes.drawing import encode_png
from tasks.contexts.scenes.questions import ANSWERS
from tasks.contexts.scenes.scene import Scene

pytestmark = pytest.mark.nightly("starters")

HELD = draw_held_out_samples(400)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def model(home: Path) -> Iterator[ServedModel]:
    """As the model server runs it, by what is shipped: nothing is exported."""
    folder = shipped.install_starter("vqa", home)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(backends, "export_onnx")
        served = ServedModel(ModelSpec("vqa", str(folder)), home / "serving", max_queued=1024)
    yield served
    served.close()


def ask(model: ServedModel, asked: list[tuple[Scene, str]]) -> list[Answer]:
    rows = [
        {"image": base64.b64encode(encode_png(scene)).decode(), "question": text}
        for scene, text in asked
    ]
    parts = [rows[first : first + 64] for first in range(0, len(rows), 64)]
    waiting = [model.submit(part, deadline=time.monotonic() + 300) for part in parts]
    return [answer for future in waiting for answer in future.result(300)]


def test_it_is_small() -> None:
    files = shipped.find_shipped_folder("vqa").iterdir()
    assert sum(file.stat().st_size for file in files) <= 2_000_000


def test_it_answers_three_quarters_of_what_no_training_saw(model: ServedModel) -> None:
    answers = ask(model, [(scene, question.text) for scene, question in HELD])
    said = [answer.output["answer"] for answer in answers]
    right = sum(a == row.question.answer for a, row in zip(said, HELD, strict=True)) / len(HELD)
    report = shipped.read_report(shipped.find_shipped_folder("vqa"))
    assert right >= 0.75
    assert right == pytest.approx(report["held_out"]["accuracy"], abs=0.06)
    assert all(answer.prob.keys() == {*ANSWERS} for answer in answers)
    shares = [np.log(np.maximum([*answer.prob.values()], 1e-9)) for answer in answers]
    shown = [
        ScoredRow(scores, [*answer.prob].index(row.question.answer))
        for scores, answer, row in zip(shares, answers, HELD, strict=True)
    ]
    assert compute_calibration_error(shown) <= 0.06


def test_onnx_runtime_answers_as_torch_does(model: ServedModel, home: Path) -> None:
    folder = shipped.find_starter_folder("vqa", home)
    some = HELD[:120]
    said = ask(model, [(scene, question.text) for scene, question in some])
    pairs = zip(said, answer_pictures(folder, some), strict=True)
    assert sum(a.output["answer"] == other for a, other in pairs) >= 0.98 * len(some)


TRIVIAL = {
    "How many shapes are not red?": lambda s: sum(t.colour != "red" for t in s.figures),
    "Are there no circles?": lambda s: not any(t.shape == "circle" for t in s.figures),
    "How many sides do all the squares have together?": lambda s: (
        4 * sum(t.shape == "square" for t in s.figures)
    ),
    "Are all shapes small?": lambda s: all(t.size == "small" for t in s.figures),
    "How many colours are there?": lambda s: len({t.colour for t in s.figures}),
}


def test_questions_that_people_find_trivial_fool_it(model: ServedModel) -> None:
    words = {True: "yes", False: "no"}
    asked = [(scene, text) for scene, _ in HELD[:20] for text in TRIVIAL]
    right = 0
    for (scene, text), answer in zip(asked, ask(model, asked), strict=True):
        truth = TRIVIAL[text](scene)
        right += answer.output["answer"] == (
            words[truth] if truth in (True, False) and isinstance(truth, bool) else str(truth)
        )
    assert right < 0.6 * len(asked)


def test_held_out_questions_are_of_scenes_that_no_training_draws() -> None:
    seen = {
        scene for scene, _ in (next(row) for row in [draw_samples(0, 8)] for _ in range(20_000))
    }
    assert not seen & {scene for scene, _ in HELD}


TINY = PictureOptions(steps=3, batch=8, hidden=16, layers=1, heads=2, side=16)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(seeds, "OFFICIAL_TASKS_FOLDER", tmp_path / "official")
    monkeypatch.setattr(starters, "PICTURE_STARTERS", {"vqa": TINY})
    monkeypatch.setattr(starters, "HELD_OUT_QUESTIONS", 40)
    return shipped.find_shipped_folder("vqa")


def test_a_small_one_is_trained_shipped_and_installed(tiny: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    starters.train_starter("vqa", tiny, lambda done, most, words: steps.append((done, most)))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert starters.is_starter_fresh("vqa")
    report = shipped.read_report(tiny)
    assert (report["questions"], report["held_out_rows"]) == (24, 40)
    folder = shipped.install_starter("vqa", tmp_path)
    assert compute_accuracy_by_kind(folder, draw_held_out_samples(40)) == report["held_out"]
    assert report["calibration"]["rows"] == 40
    surer = load_file(tiny / shipped.WEIGHTS_FILE)
    for name in ("classifier.3.weight", "classifier.3.bias"):
        surer[name] = surer[name] * 50
    save_file(surer, tiny / shipped.WEIGHTS_FILE)
    starters.calibrate_starter("vqa", tiny)
    assert shipped.read_report(tiny)["calibration"]["temperature"] > 2


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    for name in ("one", "other"):
        train_pictures(TINY, tmp_path / name, lambda *_: None)
    one, other = ((tmp_path / n / shipped.WEIGHTS_FILE).read_bytes() for n in ("one", "other"))
    assert one == other


def test_other_options_are_another_recipe(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = starters.compute_recipe("vqa")
    monkeypatch.setattr(starters, "PICTURE_STARTERS", {"vqa": PictureOptions()})
    assert starters.compute_recipe("vqa") != before


def test_reference_models_without_learning_or_sight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = reference_pictures.PictureVariant({"steps": 2, "batch": 8, "layers": 1}, is_blind=True)
    monkeypatch.setitem(reference_pictures.PICTURE_VARIANTS, "question-only", blind)
    monkeypatch.setattr(reference_pictures, "COUNTED_QUESTIONS", 400)
    asked = [row.question for row in HELD[:20]]
    same = [
        [PictureSample(scene, one) for one in asked] for scene in (HELD[0].scene, HELD[1].scene)
    ]
    found = {}
    for name in ("majority", "random", "question-only"):
        reference.build_reference_model(
            "vqa", name, tmp_path / name, lambda *_: None, is_trained=True
        )
        found[name] = [answer_pictures(tmp_path / name, rows) for rows in same]
    assert len({answer for answers in found["majority"] for answer in answers}) == 1
    assert len({*answer_pictures(tmp_path / "random", HELD[:40])}) > 3
    assert found["question-only"][0] == found["question-only"][1]
