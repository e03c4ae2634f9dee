"""The fast backend answers what the reference answers, on sentences that people wrote."""

import gzip
import json
import time
from collections import Counter
from pathlib import Path

import pytest

from evaluation.training.fine_tune import TrainingOptions, train
from evaluation.training.starters import STARTERS, encoder, seed_rows
from tasks.targets.serving.registry import ServedModel
from tasks.targets.serving.spec import ModelSpec
from tests.conftest import DATA


@pytest.fixture
def sentiment(tmp_path: Path) -> Path:
    """The sentiment starter's top layer and head, fitted to a part of its rows."""
    folder = tmp_path / "sentiment"
    train(
        seed_rows("sentiment")[:300],
        kind=STARTERS["sentiment"].kind,
        base=encoder(),
        output_dir=folder,
        options=TrainingOptions(
            epochs=1, frozen_layers=5, labels=("positive", "negative", "neutral")
        ),
        progress=lambda done, steps, words: None,
    )
    return folder


def labels(folder: Path, cache: Path, backend: str, texts: list[str]) -> list[str]:
    """What the served model answers, sorted by length as its batches are."""
    model = ServedModel(ModelSpec("m", str(folder), backend=backend), cache, max_queued=64)
    order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
    answers: dict[int, str] = {}
    for start in range(0, len(order), 64):
        part = order[start : start + 64]
        rows = [{"text": texts[n]} for n in part]
        found = model.submit(rows, deadline=time.monotonic() + 300).result()
        answers |= {n: answer.output["label"] for n, answer in zip(part, found, strict=True)}
    model.close()
    return [answers[n] for n in range(len(texts))]


@pytest.mark.data
def test_onnx_runtime_gives_the_labels_of_torch(sentiment: Path, tmp_path: Path) -> None:
    with gzip.open(DATA / "dynasent-r1-dev.jsonl.gz", "rt") as file:
        texts = [json.loads(line)["input"]["text"] for line in file][::18]
    assert len(texts) == 200
    torch, onnx = (labels(sentiment, tmp_path, backend, texts) for backend in ("torch", "onnx"))
    counts = Counter(torch)
    assert len(counts) == 3
    assert min(counts.values()) > 10
    assert onnx == torch
