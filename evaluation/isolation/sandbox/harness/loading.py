"""The loading of a model for the harness."""

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.text.words import spelled
from serving.backends import Backend, TorchBackend, read_model, settled_model
from serving.codecs import Codec
from serving.errors import MisconfiguredError
from serving.spec import WRITES, ModelFolder, ModelSpec, find_weights, open_folder
from serving.tokens import codec_of

from .lora import merge
from .writing import Writer


@dataclass(frozen=True)
class Model:
    """A loaded model. `workers` threads may use it at the same time, each on one core."""

    codec: Codec
    backend: Backend
    workers: int


def load_classifier(options: Namespace) -> Model:
    """Load a folder's classifier or span model. Raises MisconfiguredError."""
    folder = open_folder(
        ModelSpec(
            name="The model",
            source=options.model,
            fields=tuple(options.field),
            output=options.output,
            backend="torch",
        )
    )
    if (folder.labels is None) != (options.label is None):
        answer = "a span"
        if options.label:
            answer = f"one of {', '.join(options.label)}"
        raise MisconfiguredError(
            f"The model is of the kind {folder.kind}, but the task wants {answer}."
        )
    labels = folder.labels and _as_the_task(folder.labels, options.label)
    folder = replace(folder, labels=labels)
    prepare()
    spec = ModelSpec("The model", options.model, backend="torch")
    model, tokens = settled_model(spec, folder)
    backend = TorchBackend(model, tokens)
    return Model(codec_of(folder, tokens), backend, min(options.threads, backend.workers))


def load_writer(options: Namespace) -> Writer:
    """Load a folder's language model, which uses all threads. Raises MisconfiguredError."""
    prepare()
    import torch
    from transformers import AutoTokenizer

    spec = ModelSpec("The model", options.model, backend="torch")
    path, weights = find_weights(spec)
    folder = ModelFolder(path, weights, WRITES, ("messages",), "text", None, None)
    # An adapter may come with a tokenizer of its own, with the turns that it was trained on.
    tokenizer_folder = path
    if options.lora and (Path(options.lora) / "tokenizer_config.json").is_file():
        tokenizer_folder = Path(options.lora)
    how = {"local_files_only": True, "trust_remote_code": False, "padding_side": "left"}
    try:
        tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder, **how)
    except Exception as error:  # transformers raises many kinds
        raise MisconfiguredError(f"Its tokenizer cannot be loaded: {error}") from error
    torch.set_num_threads(options.threads)
    model = read_model(spec, folder, torch.float32).eval()
    if options.lora:
        merge(model, Path(options.lora))
    if not tokenizer.chat_template:
        raise MisconfiguredError("No tokenizer, the adapter's or the base's, has a chat template.")
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise MisconfiguredError("The tokenizer has more tokens than the model.")
    return Writer(model, tokenizer, options.max_tokens, options.stop)


def _as_the_task(labels: Sequence[str], task_labels: Sequence[str]) -> tuple[str, ...]:
    """Return the model's labels in their order, in the task's spelling.

    Raises MisconfiguredError if they are not the task's labels.
    """
    task_spelling = spelled(labels, task_labels)
    if task_spelling is None:
        names = ", ".join(map(str, labels))
        raise MisconfiguredError(
            f"The model answers {names}; the task's labels are {', '.join(task_labels)}. "
            'Name them in the order of its logits: "labels" in dynabench.json or "id2label" in '
            "config.json."
        )
    return task_spelling


def prepare() -> None:
    """Import the libraries needed for loading, without their progress messages.

    Each of our threads has its own core, so OpenMP gets only one thread.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch  # noqa: F401
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


if __name__ == "__main__":  # while the image is built: compiles what a start will import
    prepare()
    from transformers import AutoModelForSequenceClassification, AutoTokenizer  # noqa: F401
    from transformers.models.bert import modeling_bert  # noqa: F401
