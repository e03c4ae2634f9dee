"""The fast backend answers what the reference answers, on sentences that people wrote."""

import gzip
import json
import time
from collections import Counter
from pathlib import Path

import pytest

from evaluation.training.shipped import install_starter
from serving.registry import ServedModel
from serving.spec import ModelSpec
from tests.conftest import DATA


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
def test_onnx_runtime_gives_the_labels_of_torch(tmp_path: Path) -> None:
    sentiment = install_starter("sentiment", tmp_path)
    with gzip.open(DATA / "dynasent-r1-dev.jsonl.gz", "rt") as file:
        texts = [json.loads(line)["input"]["text"] for line in file][::18]
    assert len(texts) == 200
    cache = tmp_path / "serving"
    torch, onnx = (labels(sentiment, cache, backend, texts) for backend in ("torch", "onnx"))
    counts = Counter(torch)
    assert len(counts) == 3
    assert min(counts.values()) > 10
    assert onnx == torch
