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

SMALL_CONFIG = {"hidden": 32, "layers": 1, "heads": 1}
CENTRING_ROWS = 200
"""The number of questions on which the random model's answers are balanced."""
COUNTED_QUESTIONS = 8000
"""The number of training questions from which the most frequent answer is determined."""


@dataclass(frozen=True)
class PictureVariant:
    """The differences of a model from the starter.

    is_blind: whether it always sees the same grey picture.
    """

    changes: Mapping[str, int]
    is_blind: bool = False


PICTURE_VARIANTS = {
    "question-only": PictureVariant({"steps": 400}, is_blind=True),
    "two-layers": PictureVariant({"layers": 2, "hidden": 64, "steps": 1000}),
    "quarter": PictureVariant({"steps": 500}),
    "half": PictureVariant({"steps": 1000}),
}
ABOUT_MODEL = {
    "majority": "always the most frequent answer of the training",
    "random": "one layer of random weights: an arbitrary answer to each question",
    "question-only": "the starter's shape, trained and asked without seeing the picture",
    "two-layers": "half the layers, half the width and half the steps of the starter",
    "quarter": "the starter's shape, a quarter of its steps",
    "half": "the starter's shape, half of its steps",
    "starter": "the task's starter model",
}
"""The descriptions of all models in a pool of pictures."""


def build_picture_model(name: str, folder: Path, progress: Progress, *, is_trained: bool) -> None:
    """Write the folder of any model in ABOUT_MODEL except the starter.

    is_trained: whether to train it, which takes minutes; baselines are never trained.
    """
    options = PictureOptions()
    if name in PICTURE_VARIANTS:
        variant = PICTURE_VARIANTS[name]
        options = replace(options, **variant.changes)
        if is_trained:
            train_pictures(options, folder, progress, is_blind=variant.is_blind)
        else:
            make_picture_training(options).save(folder)
    else:
        _write_baseline(name, replace(options, **SMALL_CONFIG), folder)


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
            most_frequent = counts.most_common(1)[0][0]
            last_layer.weight.zero_()
            last_layer.bias[ANSWERS.index(most_frequent)] = 1.0
        else:
            for weights in training.model.parameters():
                if weights.dim() > 1:
                    torch.nn.init.normal_(weights)
            rows = list(islice(draw_samples(options.seed, options.asked), CENTRING_ROWS))
            last_layer.bias -= training.compute_logits(rows).mean(dim=0)
    training.save(folder)
