"""Learn from pictures, for tasks that rank training data.

A residual network, whose weights are drawn by a seed and never trained, computes the features of a
picture. They are good enough to compare data by, and were not trained on anybody's pictures. A
linear layer over them is trained on the rows of a submission.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from serving.pictures import read_pixels
from serving.spec import FIELDS_BY_KIND, IMAGE_CLASSIFICATION, OUTPUT_BY_KIND, PictureSettings

if TYPE_CHECKING:
    import torch

PICTURE_SETTINGS = PictureSettings(64, (0.5,) * 3, (0.5,) * 3)
SEED = 0
BATCH_ROWS = 64
WEIGHT_PENALTY = 1e-2
"""The penalty on squared weights of the linear layer, whose inputs have mean 0 and deviation 1."""


class StoredFile(Protocol):
    """A stored picture file that can be opened."""

    def open(self, mode: str) -> Any: ...


def learn_pictures(
    rows: Sequence[tuple[StoredFile, str]], labels: Sequence[str], folder: Path
) -> None:
    """Train a model on labelled pictures and write its folder.

    The same rows on the same machine give the same weights.
    """
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        embedding_size=64,
        hidden_sizes=[128, 256],
        depths=[1, 1],
        layer_type="basic",
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    # The seed must not affect the process's random generator.
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        model = ResNetForImageClassification(config).eval()
    chunks = []
    for start in range(0, len(rows), BATCH_ROWS):
        chunks.append(_compute_features(model, rows[start : start + BATCH_ROWS]))
    features = torch.cat(chunks)
    targets = torch.tensor([labels.index(label) for _, label in rows])
    _fit_layer(model.classifier[-1], features, targets)
    model.save_pretrained(folder)
    model_config = {
        "kind": IMAGE_CLASSIFICATION,
        "fields": FIELDS_BY_KIND[IMAGE_CLASSIFICATION],
        "output": OUTPUT_BY_KIND[IMAGE_CLASSIFICATION],
        "labels": labels,
        "trained_on": "the rows of this submission",
    }
    processor_settings = {
        "size": PICTURE_SETTINGS.side,
        "image_mean": PICTURE_SETTINGS.mean,
        "image_std": PICTURE_SETTINGS.std,
    }
    for name, values in (("dynabench", model_config), ("preprocessor_config", processor_settings)):
        (folder / f"{name}.json").write_text(json.dumps(values, indent=2) + "\n")


def _compute_features(model: Any, rows: Sequence[tuple[StoredFile, str]]) -> "torch.Tensor":
    """Return an array [rows, features] of the pictures, preprocessed as in the model server."""
    import torch

    pixels = []
    for stored_file, _ in rows:
        with stored_file.open("rb") as file:
            pixels.append(read_pixels(b64encode(file.read()).decode(), "image", PICTURE_SETTINGS))
    with torch.inference_mode():
        pooled_features: torch.Tensor = model.resnet(
            torch.from_numpy(np.stack(pixels))
        ).pooler_output
    return pooled_features.flatten(1).clone()


def _fit_layer(layer: "torch.nn.Linear", features: "torch.Tensor", targets: "torch.Tensor") -> None:
    """Fit a linear layer by logistic regression on standardized features.

    The standardization is folded into the layer's weights.
    """
    import torch

    # A little more than the deviation, because a feature may be constant.
    mean, deviation = features.mean(0), features.std(0, correction=0) + 1e-6
    scaled_features = (features - mean) / deviation
    # From zero instead of random weights: logistic regression has one best solution.
    weight = torch.zeros_like(layer.weight, requires_grad=True)
    bias = torch.zeros_like(layer.bias, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def compute_loss() -> "torch.Tensor":
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(scaled_features @ weight.T + bias, targets)
        value = value + WEIGHT_PENALTY * weight.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(compute_loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        layer.weight.copy_(weight / deviation)
        layer.bias.copy_(bias - (weight / deviation) @ mean)
