"""Load a model for the harness."""

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.text.words import order_labels_by_names
from serving.backends import Backend, TorchBackend, load_model_and_filling, load_transformers_model
from serving.codecs import Codec
from serving.errors import MisconfiguredError
from serving.spec import TEXT_GENERATION, ModelFolder, ModelSpec, find_weights, open_folder
from serving.tokens import build_codec

from .lora import merge_adapter
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
        expected_answer = "a span"
        if options.label:
            expected_answer = f"one of {', '.join(options.label)}"
        raise MisconfiguredError(
            f"The model is of the kind {folder.kind}, but the task wants {expected_answer}."
        )
    labels = folder.labels and _spell_labels_as_task(folder.labels, options.label)
    folder = replace(folder, labels=labels)
    import_libraries()
    spec = ModelSpec("The model", options.model, backend="torch")
    model, tokens = load_model_and_filling(spec, folder)
    backend = TorchBackend(model, tokens)
    return Model(build_codec(folder, tokens), backend, min(options.threads, backend.workers))


def load_writer(options: Namespace) -> Writer:
    """Load a folder's language model, which uses all threads. Raises MisconfiguredError."""
    import_libraries()
    import torch
    from transformers import AutoTokenizer

    spec = ModelSpec("The model", options.model, backend="torch")
    path, weights = find_weights(spec)
    folder = ModelFolder(path, weights, TEXT_GENERATION, ("messages",), "text", None, None)
    # An adapter may have its own tokenizer, with the chat template of its training.
    tokenizer_folder = path
    if options.lora and (Path(options.lora) / "tokenizer_config.json").is_file():
        tokenizer_folder = Path(options.lora)
    loading_options = {"local_files_only": True, "trust_remote_code": False, "padding_side": "left"}
    try:
        tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder, **loading_options)
    except Exception as error:  # transformers raises many kinds of errors
        raise MisconfiguredError(f"Its tokenizer cannot be loaded: {error}") from error
    torch.set_num_threads(options.threads)
    model = load_transformers_model(spec, folder, torch.float32).eval()
    if options.lora:
        merge_adapter(model, Path(options.lora))
    if not tokenizer.chat_template:
        raise MisconfiguredError("No tokenizer, the adapter's or the base's, has a chat template.")
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise MisconfiguredError("The tokenizer has more tokens than the model.")
    return Writer(model, tokenizer, options.max_tokens, options.stop)


def _spell_labels_as_task(labels: Sequence[str], task_labels: Sequence[str]) -> tuple[str, ...]:
    """Return the model's labels in their order, in the task's spelling.

    Raises MisconfiguredError if they are not the task's labels.
    """
    task_spelling = order_labels_by_names(labels, task_labels)
    if task_spelling is None:
        names = ", ".join(map(str, labels))
        raise MisconfiguredError(
            f"The model answers {names}; the task's labels are {', '.join(task_labels)}. "
            'Name them in the order of its logits: "labels" in dynabench.json or "id2label" in '
            "config.json."
        )
    return task_spelling


def import_libraries() -> None:
    """Import the libraries needed for loading, without their progress messages.

    Each of our threads has its own core, so OpenMP gets only one thread.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch  # noqa: F401
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


if __name__ == "__main__":  # run during the image build: compiles what a start imports
    import_libraries()
    from transformers import AutoModelForSequenceClassification, AutoTokenizer  # noqa: F401
    from transformers.models.bert import modeling_bert  # noqa: F401
