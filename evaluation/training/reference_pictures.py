"""Build the reference models of questions on pictures, from a constant to the starter."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from evaluation.training.fine_tune import Progress
from evaluation.training.pictures import (
    PictureOptions,
    draw_samples,
    make_picture_training,
    train_pictures,
)
from tasks.contexts.scenes.questions import ANSWERS

SMALL = {"hidden": 32, "layers": 1, "heads": 1}
CENTRING_ROWS = 200
"""Questions on which the random model gives each answer about as often."""
COUNTED_QUESTIONS = 8000
"""Questions of the training among which the most frequent answer is looked for."""


@dataclass(frozen=True)
class Shape:
    """The differences of a model from the starter.

    is_blind: whether it always sees the same grey picture.
    """

    changes: Mapping[str, int]
    is_blind: bool = False


SHAPES = {
    "question-only": Shape({"steps": 400}, is_blind=True),
    "two-layers": Shape({"layers": 2, "hidden": 64, "steps": 1000}),
    "quarter": Shape({"steps": 500}),
    "half": Shape({"steps": 1000}),
}
ABOUT = {
    "majority": "always the most frequent answer of the training",
    "random": "one layer of random weights: an arbitrary answer to each question",
    "question-only": "the starter's shape, trained and asked without seeing the picture",
    "two-layers": "half the layers, half the width and half the steps of the starter",
    "quarter": "the starter's shape, a quarter of its steps",
    "half": "the starter's shape, half of its steps",
    "starter": "the task's starter model",
}
"""All models of a pool on pictures, in words."""


def build_picture_model(name: str, folder: Path, progress: Progress, *, is_trained: bool) -> None:
    """Write the folder of a model in ABOUT other than the starter. Training takes minutes."""
    options = PictureOptions()
    if name in SHAPES:
        shape = SHAPES[name]
        options = replace(options, **shape.changes)
        if is_trained:
            train_pictures(options, folder, progress, is_blind=shape.is_blind)
        else:
            make_picture_training(options).save(folder)
    else:
        _write_baseline(name, replace(options, **SMALL), folder)


def _write_baseline(name: str, options: PictureOptions, folder: Path) -> None:
    """Write a small model that gives answers without having been trained."""
    import torch

    torch.manual_seed(0)
    training = make_picture_training(options)
    last_layer = training.model.classifier[-1]
    with torch.no_grad():
        # So that the answers depend on the weights alone.
        last_layer.bias.zero_()
        if name == "majority":
            first_samples = islice(draw_samples(options.seed, options.asked), COUNTED_QUESTIONS)
            counts = Counter(sample.question.answer for sample in first_samples)
            most = counts.most_common(1)[0][0]
            last_layer.weight.zero_()
            last_layer.bias[ANSWERS.index(most)] = 1.0
        else:
            for weights in training.model.parameters():
                if weights.dim() > 1:
                    torch.nn.init.normal_(weights)
            rows = list(islice(draw_samples(options.seed, options.asked), CENTRING_ROWS))
            last_layer.bias -= training.logits(rows).mean(dim=0)
    training.save(folder)
