"""The shipped starters: small, of the present recipe, the same bytes everywhere, quickly served."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from bench import reference_talks
from evaluation import seeds
from evaluation.seeds import held_out, seed_rows
from evaluation.training import reference, shipped
from evaluation.training.fine_tune import Reading, answers
from evaluation.training.low_rank import merge, squeeze
from evaluation.training.starters import CODES, STARTERS, is_fresh
from leaderboard.scoring import anchored, pools
from serving import backends
from serving.registry import ServedModel
from serving.spec import OUTPUTS, SPAN, ModelSpec


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
    parts = squeeze(before, after, 4)
    merged = merge(before, parts)
    assert merged.keys() == after.keys()
    for name, weights in after.items():
        assert merged[name].dtype == np.float32
        np.testing.assert_allclose(merged[name], weights, atol=np.abs(turned).max() / 25 + 0.01)
    assert np.array_equal(merged["kept"], before["kept"])
    assert np.array_equal(merged["head"], after["head"])
    stored = {values.dtype.name for key, values in parts.items() if key.startswith("left")}
    assert stored == {"int8"}


def test_the_starters_of_the_encoder_are_small_together() -> None:
    files = [shipped.shipped_folder(code) / shipped.DELTA for code in STARTERS]
    assert sum(file.stat().st_size for file in files) <= 3_000_000


@pytest.mark.parametrize("code", CODES)
def test_what_is_shipped_is_of_the_present_seeds_and_options(code: str) -> None:
    """If not: `manage.py train_starters`."""
    assert is_fresh(code)


@pytest.mark.parametrize("code", STARTERS)
def test_a_starter_is_installed_and_served_without_an_export(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The merged weights are those of the report, and ONNX Runtime answers as torch does."""
    folder = shipped.install_starter(code, tmp_path)
    monkeypatch.delattr(backends, "export_onnx")
    kind, labels = STARTERS[code].kind, STARTERS[code].options.labels
    rows = held_out(seed_rows(code))[1][::5]
    model = ServedModel(ModelSpec(code, str(folder)), tmp_path / "serving", max_queued=64)
    inputs = [{field: row[field] for field in model.fields} for row in rows]
    said = model.submit(inputs, deadline=time.monotonic() + 300).result()
    model.close()
    reading = Reading(kind, labels, model.codec.max_length)
    wanted = answers(folder, rows, reading)
    pairs = [
        (a.output[OUTPUTS[kind]], b.output[OUTPUTS[kind]])
        for a, b in zip(said, wanted, strict=True)
    ]
    assert sum(ours == torchs for ours, torchs in pairs) >= 0.98 * len(pairs)
    answer = "answer" if kind == SPAN else "label"
    right = sum(ours == row[answer] for (ours, _), row in zip(pairs, rows, strict=True))
    figure = "exact_match" if kind == SPAN else "accuracy"
    assert right / len(rows) == pytest.approx(
        shipped.read_report(folder)["held_out"][figure], abs=0.2
    )


@pytest.mark.parametrize("moment", ["weights", "graph"])
def test_two_first_starts_at_once_install_one_starter(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one installs while this one reads what its weights or its graph are made of."""
    folder = shipped.starter_folder("sentiment", tmp_path)
    files = {"weights": shipped.shipped_folder("sentiment") / shipped.DELTA}
    files["graph"] = folder / shipped.MODEL

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
    monkeypatch.setattr(seeds, "OFFICIAL", tmp_path / "official")
    real = Path(shipped.__file__).parents[2] / "tasks" / "official" / "sentiment" / "starter"
    copy = shutil.copytree(real, shipped.shipped_folder("sentiment"))
    parts = load_file(copy / shipped.DELTA)
    name = next(key for key in parts if key.startswith("left/"))
    parts[name][0, 0] += 1
    save_file(parts, copy / shipped.DELTA)
    with pytest.raises(RuntimeError, match="other weights"):
        shipped.install_starter("sentiment", tmp_path)
    assert list((tmp_path / "models" / "starters" / "sentiment").iterdir()) == []


def test_the_shipped_files_name_no_path_of_the_machine_that_made_them() -> None:
    for code in CODES:
        for file in shipped.shipped_folder(code).iterdir():
            words = file.read_bytes()
            assert b"/tmp/" not in words, file
            assert b".venv" not in words, file
        report = json.loads((shipped.shipped_folder(code) / shipped.REPORT).read_bytes())
        assert report["task"] == code


def test_the_models_of_a_reference_pool_are_named_alike_where_they_are_made_and_read() -> None:
    assert {*reference.BASELINES, *reference_talks.TRIVIAL} == {*anchored.BASELINES}
    made = {**reference.POOLS, **reference_talks.ABOUT}
    assert {code: [*pools.shipped_pool(code).rows] for code in made} == {
        code: [*about] for code, about in made.items()
    }
