"""A release as a benchmark on the hub, read and run by Inspect's own reader of `eval.yaml`."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
from io import BytesIO

import pyarrow.parquet as pq
import pytest
import yaml

from tests.support.releases import (  # noqa: F401
    _own_storage,
    closed,
    content,
    lines,
    people,
    released,
)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The hub's client and its loader of data, which find a release's folder instead."""
    import datasets
    import huggingface_hub

    def find(dataset):
        folder = tmp_path / "releases" / str(dataset)
        monkeypatch.setattr(
            huggingface_hub, "hf_hub_download", lambda filename, **_: str(folder / filename)
        )
        load = datasets.load_dataset

        def load_here(path, name=None, split=None, **_):
            return load(str(folder), name, split=split, cache_dir=str(tmp_path / "cache"))

        monkeypatch.setattr(datasets, "load_dataset", load_here)
        return folder

    return find


def test_inspect_runs_a_release_by_its_eval_yaml(closed, hub, monkeypatch, tmp_path):
    from inspect_ai import eval as evaluate
    from inspect_ai._eval.task.hf import task_create_from_hf
    from inspect_ai.model import ModelOutput, get_model

    dataset = released(closed)
    hub(dataset)
    (task,) = task_create_from_hf("hf/lab/nli")
    rows = lines(dataset, "test")
    statements = [json.loads(row["input_json"])["hypothesis"] for row in rows]
    for sample, statement in zip(task.dataset, statements, strict=True):
        assert f"hypothesis: {statement}\n" in sample.input
    assert [sample.target for sample in task.dataset] == [row["label"] for row in rows]
    # Its own count of tokens downloads a vocabulary.
    monkeypatch.setattr("inspect_ai.model._model.count_text_tokens", len)
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))
    outputs = [ModelOutput.from_content("mock", "neutral") for _ in rows]
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = evaluate(task, model=model, display="none")
    assert log.status == "success", log.error
    share = sum(row["label"] == "neutral" for row in rows) / len(rows)
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(share)


def test_the_rows_stay_what_a_folder_loads_by_default(closed, hub, tmp_path):
    from datasets import load_dataset

    dataset = released(closed)
    folder = hub(dataset)
    loaded = load_dataset(str(folder))
    assert {name: len(split) for name, split in loaded.items()} == {
        "train": 40,
        "validation": 8,
        "test": 8,
    }
    questions = load_dataset(str(folder), "eval")["test"]
    assert set(questions.column_names) == {"id", "prompt", "target", "choices"}


def test_private_labels_are_in_no_question(closed):
    dataset = released(closed, private_test=True)
    questions = pq.read_table(BytesIO(content(dataset, "eval.parquet"))).to_pylist()
    assert [question["id"] for question in questions] == [
        row["uid"] for row in lines(dataset, "dev")
    ]
    assert dataset.files.get(name="eval.parquet").is_public


def test_the_digests_cover_both_files(closed):
    dataset = released(closed)
    sums = content(dataset, "SHA256SUMS").decode()
    assert "  eval.yaml\n" in sums
    assert "  eval.parquet\n" in sums
    benchmark = yaml.safe_load(content(dataset, "eval.yaml"))
    assert benchmark["tasks"][0]["id"] == "dynabench_nli_r1"
