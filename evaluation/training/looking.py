"""Learn from pictures, for tasks that rank training data.

A residual network whose weights are drawn by a seed and never trained looks at a picture; its
features are enough to compare data by, and nobody's pictures were trained on. A linear layer over
them learns from the rows of a submission.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from serving.pictures import pixels_of
from serving.spec import FIELDS, LOOKS, OUTPUTS, PictureSettings

if TYPE_CHECKING:
    import torch

SETTINGS = PictureSettings(64, (0.5,) * 3, (0.5,) * 3)
SEED = 0
BATCH = 64
WEIGHT_PENALTY = 1e-2
"""Of the squared weights of the linear layer, whose inputs have mean 0 and deviation 1."""


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
    # The seed must not change the chance of the process.
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        model = ResNetForImageClassification(config).eval()
    chunks = []
    for first in range(0, len(rows), BATCH):
        chunks.append(_compute_features(model, rows[first : first + BATCH]))
    features = torch.cat(chunks)
    targets = torch.tensor([labels.index(label) for _, label in rows])
    _fit_layer(model.classifier[-1], features, targets)
    model.save_pretrained(folder)
    about = {
        "kind": LOOKS,
        "fields": FIELDS[LOOKS],
        "output": OUTPUTS[LOOKS],
        "labels": labels,
        "trained_on": "the rows of this submission",
    }
    looks = {"size": SETTINGS.side, "image_mean": SETTINGS.mean, "image_std": SETTINGS.std}
    for name, values in (("dynabench", about), ("preprocessor_config", looks)):
        (folder / f"{name}.json").write_text(json.dumps(values, indent=2) + "\n")


def _compute_features(model: Any, rows: Sequence[tuple[StoredFile, str]]) -> "torch.Tensor":
    """Return an array [rows, features] of the pictures, preprocessed as in the model server."""
    import torch

    pixels = []
    for stored, _ in rows:
        with stored.open("rb") as file:
            pixels.append(pixels_of(b64encode(file.read()).decode(), "image", SETTINGS))
    with torch.inference_mode():
        seen: torch.Tensor = model.resnet(torch.from_numpy(np.stack(pixels))).pooler_output
    return seen.flatten(1).clone()


def _fit_layer(layer: "torch.nn.Linear", features: "torch.Tensor", targets: "torch.Tensor") -> None:
    """Fit a linear layer by logistic regression on standardized features.

    The standardization is folded into the layer's weights.
    """
    import torch

    # A little more than the deviation, since a feature may be the same for all pictures.
    mean, deviation = features.mean(0), features.std(0, correction=0) + 1e-6
    scaled_features = (features - mean) / deviation
    # From zero and not from chance: logistic regression has one best solution.
    weight = torch.zeros_like(layer.weight, requires_grad=True)
    bias = torch.zeros_like(layer.bias, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> "torch.Tensor":
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(scaled_features @ weight.T + bias, targets)
        value = value + WEIGHT_PENALTY * weight.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        layer.weight.copy_(weight / deviation)
        layer.bias.copy_(bias - (weight / deviation) @ mean)
