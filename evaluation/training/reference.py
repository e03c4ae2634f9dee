"""Build the models of the reference pools, which anchor boards: from a constant to the starter.

Each is an ordinary folder of weights. An untrained folder needs as much time and memory as a
trained one. So a site can measure its own speed in minutes.
"""

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evaluation.seeds import read_seed_rows, split_held_out
from evaluation.training import reference_pictures
from evaluation.training.fine_tune import Progress, train
from evaluation.training.shipped import (
    TOKENIZER_FILES,
    find_encoder,
    find_shipped_folder,
    unpack_starter,
)
from evaluation.training.starters import PICTURE_STARTERS, STARTERS
from serving.spec import FIELDS_BY_KIND, SPAN

SMALL_CONFIG = {
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 32,
}  # fmt: skip
WEIGHT_DEVIATION = 1.0
"""The standard deviation of random weights, large enough that answers depend on the text."""
CENTRING_ROWS = 200
"""The number of rows on which the random model is adjusted to give all labels equally often."""


@dataclass(frozen=True)
class LayerConfig:
    """A part of the encoder that is fine-tuned on the seeds.

    layers: the number of lowest layers used. has_order: whether it knows the positions of words.
    epochs: the number of epochs for texts and for questions, whose passages take ten times as long.
    changes: other training options to override.
    """

    layers: int
    has_order: bool
    epochs: tuple[int, int]
    changes: Mapping[str, Any]


LAYER_CONFIGS = {
    "bag-of-words": LayerConfig(1, has_order=False, epochs=(6, 6), changes={"learning_rate": 5e-4}),
    "two-layers": LayerConfig(
        2, has_order=True, epochs=(6, 1), changes={"learning_rate": 3e-4, "window": 48}
    ),
    "frozen-encoder": LayerConfig(
        6, has_order=True, epochs=(2, 1), changes={"frozen_layers": 6, "window": 48}
    ),
}
BASELINES = ("majority", "random")
"""Models that need no understanding. They anchor the main metric at the low end."""
ABOUT_MODEL = {
    "majority": "always the most frequent label of the seeds; of a passage its first words",
    "random": "one layer of random weights: an arbitrary answer to each text",
    "bag-of-words": "one layer over the encoder's word vectors, without the order of words",
    "two-layers": "the lowest two layers of the encoder, fine-tuned",
    "frozen-encoder": "the whole encoder as it is, with a trained head",
    "starter": "the task's starter model: the whole encoder, fine-tuned",
}
"""The descriptions of all models in a pool of texts."""
POOLS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(STARTERS, ABOUT_MODEL),
    **dict.fromkeys(PICTURE_STARTERS, reference_pictures.ABOUT_MODEL),
}
"""The reference models that are folders of weights, with descriptions, by official task."""


def build_reference_model(
    code: str, name: str, folder: Path, progress: Progress, *, is_trained: bool
) -> None:
    """Write the folder of one of the models in POOLS. Training takes minutes."""
    import torch

    torch.set_num_threads(1)  # so that the weights do not depend on the number of cores
    if name == "starter":
        folder.mkdir()
        unpack_starter(find_shipped_folder(code), folder)
    elif code in PICTURE_STARTERS:
        reference_pictures.build_picture_model(name, folder, progress, is_trained=is_trained)
    elif name in BASELINES:
        _write_baseline(code, name, folder)
    else:
        _train_layers(code, LAYER_CONFIGS[name], folder, progress, is_trained=is_trained)


def _write_baseline(code: str, name: str, folder: Path) -> None:
    """Write a small model that gives answers without having been trained."""
    import torch
    from transformers import AutoConfig, AutoTokenizer

    torch.manual_seed(0)
    # The usual small weights would give nearly the same answer to every text.
    weight_options = {"initializer_range": WEIGHT_DEVIATION} if name == "random" else {}
    config = AutoConfig.from_pretrained(find_shipped_folder(code), **SMALL_CONFIG, **weight_options)
    model, rows = _find_model_class(code)(config).eval(), split_held_out(read_seed_rows(code))[0]
    labels = STARTERS[code].options.labels
    head = model.classifier if labels else model.qa_outputs
    with torch.no_grad():
        if name == "majority":
            head.weight.zero_()
            head.bias.zero_()
        # Spans have no most frequent answer, so zero weights mark the first words.
        if name == "majority" and labels:
            most_frequent = Counter(row["label"] for row in rows).most_common(1)[0][0]
            head.bias[labels.index(most_frequent)] = 1.0
        if name == "random" and labels:
            texts = []
            for field in FIELDS_BY_KIND[STARTERS[code].kind]:
                texts.append([row[field] for row in rows[:CENTRING_ROWS]])
            tokens = AutoTokenizer.from_pretrained(find_encoder())(
                *texts, padding=True, truncation=True, return_tensors="pt"
            )
            # Without this, a random model gives nearly everything one label.
            head.bias -= model(**tokens).logits.mean(dim=0)
    model.save_pretrained(folder)
    _add_settings(code, folder)


def _train_layers(
    code: str, layer_config: LayerConfig, folder: Path, progress: Progress, *, is_trained: bool
) -> None:
    """Write a model of some layers of the encoder, fine-tuned, or unchanged with a new head."""
    import torch

    starter = STARTERS[code]
    epochs = layer_config.epochs[starter.kind == SPAN]
    torch.manual_seed(starter.options.seed)
    with TemporaryDirectory() as scratch:
        base = Path(scratch, "base")
        model = _find_model_class(code).from_pretrained(
            find_encoder(),
            num_hidden_layers=layer_config.layers,
            num_labels=len(starter.options.labels or (0, 0)),
        )
        if not layer_config.has_order:
            # Without positions, so that the model sees a bag of words.
            torch.nn.init.zeros_(model.bert.embeddings.position_embeddings.weight)
        model.save_pretrained(base)
        # `save_pretrained` of a model writes no tokenizer.
        for name in TOKENIZER_FILES:
            shutil.copyfile(find_encoder() / name, base / name)
        if is_trained:
            train(
                split_held_out(read_seed_rows(code))[0],
                kind=starter.kind,
                base=base,
                output_dir=folder,
                options=replace(starter.options, epochs=epochs, **layer_config.changes),
                progress=progress,
            )
        else:
            shutil.move(base, folder)
            _add_settings(code, folder)


def _find_model_class(code: str) -> Any:
    """Return the class of transformers for the task's type of answer."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()  # a new head is meant to be new
    if STARTERS[code].options.labels:
        return transformers.BertForSequenceClassification
    return transformers.BertForQuestionAnswering


def _add_settings(code: str, folder: Path) -> None:
    """Add the tokenizer files and dynabench.json to a folder with a configuration and weights."""
    for name in TOKENIZER_FILES:
        shutil.copyfile(find_encoder() / name, folder / name)
    settings = json.loads((find_shipped_folder(code) / "dynabench.json").read_bytes())
    (folder / "dynabench.json").write_text(json.dumps(settings, indent=2) + "\n")
