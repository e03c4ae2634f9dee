"""The shipped starters: small, of the present recipe, the same bytes everywhere, quickly served."""

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from bench import reference_talks
from evaluation import seeds
from evaluation.seeds import Row, read_seed_rows, split_held_out
from evaluation.training import reference, shipped
from evaluation.training.calibration import ScoredRow, compute_calibration_error
from evaluation.training.confidence import score_rows
from evaluation.training.fine_tune import Reading, answer_texts
from evaluation.training.low_rank import compress_change, merge_change
from evaluation.training.starters import (
    STARTER_CODES,
    STARTERS,
    is_starter_calibrated,
    is_starter_fresh,
)
from leaderboard.ranking import anchored, pools
from serving import backends
from serving.codecs import Answer
from serving.registry import ServedModel
from serving.spec import OUTPUT_BY_KIND, PAIR, SEQUENCE, SPAN, ModelSpec

pytestmark = pytest.mark.nightly("starters")

LARGEST_ERROR = 0.06
"""Expected calibration error on all held-out rows; a third of the rows may reach 0.1 by chance."""
QUESTIONS = Reading(SPAN, None, 384)
MOST_ASKED = {SEQUENCE: 300, PAIR: 300, SPAN: 100}
"""Held-out rows that are asked about here, by kind; of more a third, for the sake of time."""


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_a_change_of_low_rank_comes_back(rows: int, columns: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    shapes = {"kept": (2, 3), "matrix": (rows, columns), "vector": (rows,)}
    before = {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    turned = draw.normal(size=(rows, 1)) * draw.normal(size=(1, columns))
    after = {
        **before,
        "matrix": (before["matrix"] + turned).astype(np.float32),
        "vector": before["vector"] + 1,
        "head": draw.normal(size=(2, 5)).astype(np.float32),
        "pooler": np.eye(4, dtype=np.float32) * 1.5,
    }
    parts = compress_change(before, after, 4)
    merged = merge_change(before, parts)
    assert merged.keys() == after.keys()
    for name, weights in after.items():
        assert merged[name].dtype == np.float32
        np.testing.assert_allclose(merged[name], weights, atol=np.abs(turned).max() / 25 + 0.01)
    assert np.array_equal(merged["kept"], before["kept"])
    assert np.array_equal(merged["head"], after["head"])
    stored = {values.dtype.name for key, values in parts.items() if key.startswith("left")}
    assert stored == {"int8"}


def test_the_starters_of_the_encoder_are_small_together() -> None:
    files = [shipped.find_shipped_folder(code) / shipped.DELTA_FILE for code in STARTERS]
    assert sum(file.stat().st_size for file in files) <= 3_000_000


@pytest.mark.parametrize("code", STARTER_CODES)
def test_what_is_shipped_is_of_the_present_seeds_and_options(code: str) -> None:
    """If not: `manage.py train_starters`."""
    assert is_starter_fresh(code)


@pytest.mark.parametrize("code", STARTER_CODES)
def test_a_starter_is_as_sure_as_it_is_right(code: str) -> None:
    """By its report, on the held-out rows; its weights are those of the report."""
    assert is_starter_calibrated(code)
    calibration = shipped.read_report(shipped.find_shipped_folder(code))["calibration"]
    before, after = calibration["before"], calibration["after"]
    assert after["ece"] <= LARGEST_ERROR
    assert after["nll"] <= before["nll"]


@pytest.mark.parametrize("code", STARTERS)
def test_a_starter_is_installed_and_served_without_an_export(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The merged weights are those of the report, ONNX Runtime answers as torch does, and the
    probabilities that people are shown are as honest as the report says."""
    folder = shipped.install_starter(code, tmp_path)
    monkeypatch.delattr(backends, "export_onnx")
    kind = STARTERS[code].kind
    held = split_held_out(read_seed_rows(code))[1]
    few = len(held) > MOST_ASKED[kind]
    rows = held[:: 3 if few else 1]
    said = ask_served(folder, tmp_path, rows)
    answer = "answer" if kind == SPAN else "label"
    confidences = [max(found.prob.values()) for found in said]
    rights = [
        found.output[OUTPUT_BY_KIND[kind]] == row[answer]
        for found, row in zip(said, rows, strict=True)
    ]
    figure = "exact_match" if kind == SPAN else "accuracy"
    report = shipped.read_report(folder)
    assert np.mean(rights) == pytest.approx(report["held_out"][figure], abs=0.12)
    shown = [row_of(*pair) for pair in zip(confidences, rights, strict=True)]
    assert compute_calibration_error(shown) <= (0.1 if few else LARGEST_ERROR)
    compared = slice(0, None, 8)
    scored = score_rows(folder, rows[compared])
    assert confidences[compared] == pytest.approx(confidences_of(scored), abs=0.02)
    same = [
        (int(row.scores.argmax()) == row.right) == is_right
        for row, is_right in zip(scored, rights[compared], strict=True)
    ]
    assert sum(same) >= 0.98 * len(same)


def ask_served(folder: Path, home: Path, rows: Sequence[Row]) -> list[Answer]:
    """What the model server answers."""
    model = ServedModel(
        ModelSpec(folder.parent.name, str(folder)), home / "serving", max_queued=1024
    )
    inputs = [{field: row[field] for field in model.fields} for row in rows]
    parts = [inputs[first : first + 64] for first in range(0, len(inputs), 64)]
    waiting = [model.submit(part, deadline=time.monotonic() + 300) for part in parts]
    found = [answer for future in waiting for answer in future.result(300)]
    model.close()
    return found


def row_of(confidence: float, is_right: bool) -> ScoredRow:
    """A row whose chosen answer has this confidence."""
    other = np.log(max(1 - confidence, 1e-9) / 1000) + np.zeros(1000)
    return ScoredRow(np.array([np.log(confidence), *other]), 0 if is_right else 1)


def confidences_of(rows: Sequence[ScoredRow]) -> list[float]:
    """The probabilities of the answers that a model chooses."""
    return [np.exp(row.scores.max() - np.logaddexp.reduce(row.scores)) for row in rows]


def test_answers_in_long_passages_are_scored_as_they_are_served(tmp_path: Path) -> None:
    """Over several windows, of which the shorter last one is asked first, and the answer's text
    stands in more than one."""
    folder = shipped.install_starter("qa", tmp_path)
    (row, *_, other) = split_held_out(read_seed_rows("qa"))[1]
    asked = {**row, "passage": f"{row['passage']} {other['passage']} {row['passage']}"}
    scored = score_rows(folder, [asked, {**row, "answer": "in no passage"}])
    (confidence,) = confidences_of(scored)
    for (said,) in (
        ask_served(folder, tmp_path, [asked]),
        answer_texts(folder, [asked], QUESTIONS),
    ):
        assert max(said.prob.values()) == pytest.approx(confidence, abs=0.02)


def test_fair_posts_fool_the_hate_speech_starter_and_find_it_unsure(tmp_path: Path) -> None:
    """Of many kinds: polite, ironic, quoted, negated, reclaimed, harmless. A model that is never
    wrong gives no data, and one that is certain of what it gets wrong no fun."""
    with (Path(__file__).parent / "fair_posts.jsonl").open(encoding="utf-8") as file:
        posts = [json.loads(line) for line in file]
    folder = shipped.install_starter("hate-speech", tmp_path)
    said = ask_served(folder, tmp_path, posts)
    wrong = [
        max(answer.prob.values())
        for answer, post in zip(said, posts, strict=True)
        if answer.output["label"] != post["label"]
    ]
    assert 0.2 <= len(wrong) / len(posts) <= 0.5
    assert sum(share > 0.99 for share in wrong) <= 0.1 * len(wrong)
    assert sum(max(answer.prob.values()) > 0.99 for answer in said) <= 0.1 * len(said)


@pytest.mark.parametrize("moment", ["weights", "graph"])
def test_two_first_starts_at_once_install_one_starter(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one installs while this one reads what its weights or its graph are made of."""
    folder = shipped.find_starter_folder("sentiment", tmp_path)
    files = {"weights": shipped.find_shipped_folder("sentiment") / shipped.DELTA_FILE}
    files["graph"] = folder / shipped.WEIGHTS_FILE

    def slow_load(file: Path) -> Any:
        if file == files[moment]:
            with monkeypatch.context() as other:
                other.setattr(shipped, "load_file", load_file)
                shipped.install_starter("sentiment", tmp_path)
        return load_file(file)

    monkeypatch.setattr(shipped, "load_file", slow_load)
    assert shipped.install_starter("sentiment", tmp_path) == folder
    assert list(folder.parent.iterdir()) == [folder]
    assert len(list((tmp_path / "serving" / "onnx").iterdir())) == 1


def test_weights_that_are_not_those_of_the_report_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeds, "OFFICIAL_TASKS_FOLDER", tmp_path / "official")
    real = Path(shipped.__file__).parents[2] / "tasks" / "official" / "sentiment" / "starter"
    copy = shutil.copytree(real, shipped.find_shipped_folder("sentiment"))
    parts = load_file(copy / shipped.DELTA_FILE)
    name = next(key for key in parts if key.startswith("left/"))
    parts[name][0, 0] += 1
    save_file(parts, copy / shipped.DELTA_FILE)
    with pytest.raises(RuntimeError, match="other weights"):
        shipped.install_starter("sentiment", tmp_path)
    assert list((tmp_path / "models" / "starters" / "sentiment").iterdir()) == []


def test_the_shipped_files_name_no_path_of_the_machine_that_made_them() -> None:
    for code in STARTER_CODES:
        for file in shipped.find_shipped_folder(code).iterdir():
            words = file.read_bytes()
            assert b"/tmp/" not in words, file
            assert b".venv" not in words, file
        report = json.loads((shipped.find_shipped_folder(code) / shipped.REPORT_FILE).read_bytes())
        assert report["task"] == code


def test_the_models_of_a_reference_pool_are_named_alike_where_they_are_made_and_read() -> None:
    assert {*reference.BASELINES, *reference_talks.TRIVIAL} == {*anchored.BASELINES}
    made = {**reference.POOLS, **reference_talks.DESCRIPTIONS}
    assert {code: [*pools.read_shipped_pool(code).rows] for code in made} == {
        code: [*about] for code, about in made.items()
    }
