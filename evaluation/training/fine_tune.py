"""Fine-tune a target model on labelled rows and write a folder that serve_model can serve."""

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tokenizers import Encoding

from evaluation.seeds import Row, get_split_group, split_by_group
from evaluation.training.calibration import fit_temperature
from evaluation.training.confidence import score_windows
from evaluation.training.data import (
    TrainingError,
    TrainingItem,
    check_rows,
    draw_batches,
    draw_items,
    encode_row,
    run_sorted,
    score_answers,
)
from evaluation.training.folders import make_atomic_folder
from evaluation.training.softening import divide_head
from serving.arrays import build_arrays, cut_padding, run_in_parts, split_batch
from serving.backends import load_logits_module, restore_attention
from serving.codecs import Answer, Codec, Logits, ModelInput
from serving.errors import BadRequestError, MisconfiguredError
from serving.spec import FIELDS_BY_KIND, OUTPUT_BY_KIND, SPAN, ModelFolder, ModelSpec
from serving.tokens import ModelTokenizer, build_codec, read_tokenizer
from serving.trial import choose_filling, run_trial

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

Progress = Callable[[int, int, str], None]
# Increase it if a change of this code changes the resulting weights.
CODE_VERSION = "1"
HEAD_ROWS = 1000  # the number of rows to which the head alone is fitted
HEAD_PENALTY = 1e-3  # on the head's squared weights, while it is fitted alone


@dataclass(frozen=True)
class TrainingOptions:
    """The options of a training run.

    labels: in the order of the logits; None to sort them; always None for extractive-qa.
    learning_rate, head_learning_rate: of the top layer and the head. Each layer below has
    `layer_decay` times the rate of the one above.
    window: the number of passage tokens that an extractive-qa row is trained on, drawn around its
    answer for each epoch; 0 for the whole passage.
    frozen_layers: the number of lowest layers that are not trained. The embeddings are never
    trained.
    dev_share: the share of rows, by group, that decides which epoch is used.
    patience: the number of epochs without improvement after which training stops.
    """

    labels: tuple[str, ...] | None = None
    seed: int = 0
    epochs: int = 8
    patience: int = 4
    batch_size: int = 16
    max_length: int = 128
    window: int = 0
    learning_rate: float = 1e-4
    head_learning_rate: float = 1e-3
    layer_decay: float = 0.9
    frozen_layers: int = 0
    weight_decay: float = 0.01
    label_smoothing: float = 0.0
    dev_share: float = 0.1
    trained_on: str = ""


class Reading(NamedTuple):
    """The interpretation of a model folder's inputs and outputs.

    labels: in the order of its logits; None for extractive-qa. max_length: in tokens; None for the
    model's maximum.
    """

    kind: str
    labels: tuple[str, ...] | None
    max_length: int | None


@dataclass(frozen=True)
class TrainingReport:
    """The results of a training run.

    dev: the scores (0-1) of epoch `best_epoch`, counted from 1. curve: the loss and dev scores of
    each epoch. temperature: the number by which the head was divided, so that the model's
    confidence on the dev rows matches its accuracy.
    """

    rows: int
    dev_rows: int
    epochs: int
    best_epoch: int
    dev: Mapping[str, float]
    seconds: float
    weights_sha256: str
    curve: Sequence[Mapping[str, float]]
    temperature: float


def train(
    rows: Sequence[Row],
    *,
    kind: str,
    base: str | Path,
    output_dir: Path,
    options: TrainingOptions,
    progress: Progress,
    dev: Sequence[Row] = (),
) -> TrainingReport:
    """Fine-tune `base` (a folder) on rows and write the best epoch to `output_dir`.

    1. Check the rows, and hold out a part of them to decide which epoch is the best.
    2. Fit the head alone, then the head and the encoder together.
    3. Write weights, tokenizer and settings into a folder that appears completely or not at all.

    rows: the fields of the kind and the answer (`label`, or `answer` and `answer_start`). Rows with
    the same `group`, if given, stay in one part. `weight`, if given, is how often the row is seen
    in an epoch, where a fraction is a probability.
    dev: the rows that decide which epoch is the best; by default a part of `rows`, see
    `options.dev_share`.
    The same seed on the same machine gives the same weights. Raises TrainingError for rows that
    cannot be trained on, and FileExistsError if the folder exists.
    """
    import torch

    started_at = perf_counter()
    if output_dir.exists():
        raise FileExistsError(f"{output_dir} exists. Choose another folder or remove it.")
    check_rows(list(rows) + list(dev), kind=kind, labels=options.labels)
    if not rows:
        raise TrainingError("there are no rows to train on.")
    train_rows = rows
    if not dev:
        train_rows, dev = split_dev_rows(rows, options)
    # Forks torch's random generator, so that the seed does not change the process's.
    with make_atomic_folder(output_dir) as folder, torch.random.fork_rng():
        torch.manual_seed(options.seed)
        labels = _choose_labels(rows, kind, options)
        text_model = _TextModel.load(base, Reading(kind, labels, options.max_length))
        rows_per_epoch = sum(row.get("weight", 1.0) for row in train_rows)  # on average
        steps = options.epochs * math.ceil(rows_per_epoch / options.batch_size)
        run = _TrainingLoop(text_model, options, progress, steps)
        run.fit(train_rows, dev)
        temperature = text_model.calibrate_head(dev)
        text_model.save(folder, options)
        digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    return TrainingReport(
        rows=len(train_rows),
        dev_rows=len(dev),
        epochs=run.epoch,
        best_epoch=run.best_epoch,
        dev=run.best,
        seconds=perf_counter() - started_at,
        weights_sha256=digest,
        curve=run.curve,
        temperature=temperature,
    )


def split_dev_rows(rows: Sequence[Row], options: TrainingOptions) -> tuple[list[Row], list[Row]]:
    """Split rows by group into (training rows, dev rows); by text if there is only one group.

    Raises TrainingError.
    """
    # The dev part must not share a group with the training part.
    if len(set(map(get_split_group, rows))) < 2:  # one author: their texts can still be separated
        rows = list(map(_drop_group, rows))
    if len(set(map(get_split_group, rows))) < 2:
        raise TrainingError(
            "All rows are about one text. Add rows about another one, which shows when to stop."
        )
    return split_by_group(rows, share=options.dev_share, salt=f"dev-{options.seed}")


def _drop_group(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "group"}


def evaluate_folder(folder: Path, rows: Sequence[Row]) -> dict[str, float]:
    """Return the scores (0-1) of the answers that a folder's model gives to rows."""
    settings = json.loads((folder / "dynabench.json").read_bytes())
    kind, labels = settings["kind"], settings["labels"]
    reading = Reading(kind, labels and tuple(labels), settings["max_length"])
    return score_answers(rows, answer_texts(folder, rows, reading), kind=kind)


def answer_texts(folder: Path, rows: Sequence[Row], reading: Reading) -> list[Answer]:
    """Return the answers of a folder's model to rows, which contain the fields of the kind.

    Computed in torch, so the last digits differ from those of the model server.
    """
    return _TextModel.load(folder, reading).compute_answers(rows)


def filter_fitting_rows(base: Path, rows: Sequence[Row], reading: Reading) -> list[Row]:
    """Return the rows that fit into a model's input.

    A row does not fit if the fields that may not be truncated leave no room for the others.
    """
    codec = build_codec(*_read_folder(base, reading))
    fitting_rows = []
    for row in rows:
        with suppress(BadRequestError):
            codec.encode(row)
            fitting_rows.append(row)
    return fitting_rows


def _read_folder(base: str | Path, reading: Reading) -> tuple[ModelFolder, ModelTokenizer]:
    """Return a model folder as `reading` describes it, and its tokenizer. Raises TrainingError."""
    folder = ModelFolder(
        path=Path(base),
        weights=(),
        fields=FIELDS_BY_KIND[reading.kind],
        output=OUTPUT_BY_KIND[reading.kind],
        **reading._asdict(),
    )
    try:
        return folder, read_tokenizer(ModelSpec("The base", str(base), backend="torch"), folder)
    except MisconfiguredError as error:
        raise TrainingError(str(error)) from error


def _choose_labels(
    rows: Sequence[Row], kind: str, options: TrainingOptions
) -> tuple[str, ...] | None:
    if kind == SPAN:
        return None
    return options.labels or tuple(sorted({row["label"] for row in rows}))


@dataclass(frozen=True)
class _TextModel:
    """A model in torch with its tokenizer, which encodes inputs as the model server does."""

    model: Any
    tokenizer: "PreTrainedTokenizerFast"
    tokens: ModelTokenizer
    codec: Codec
    kind: str

    @classmethod
    def load(cls, base: str | Path, reading: Reading) -> "_TextModel":
        """Load the base with its own head if the head fits the kind, otherwise with a new one.

        Raises TrainingError if the model server could not serve it.
        """
        import transformers

        transformers.utils.logging.disable_progress_bar()
        transformers.logging.set_verbosity_error()  # a new head is meant to be new
        # A base may come from the Hub, so none of it may run as code.
        load_options = {"use_safetensors": True, "trust_remote_code": False}  # pickles can run code
        labels = reading.labels
        if labels is None:
            model = transformers.AutoModelForQuestionAnswering.from_pretrained(base, **load_options)
        else:
            model = transformers.AutoModelForSequenceClassification.from_pretrained(
                base,
                **load_options,
                num_labels=len(labels),
                ignore_mismatched_sizes=True,  # a head with other labels is replaced by a new one
                id2label=dict(enumerate(labels)),
                label2id={label: number for number, label in enumerate(labels)},
            )
        # Weights may be 16-bit floats, in which small steps of training would be lost.
        model.float()
        folder, tokens = _read_folder(base, reading)
        logits = load_logits_module(model, folder)
        try:
            tokens = choose_filling(
                "The base", logits, tokens, run_trial("The base", logits, tokens, folder)
            )
        except MisconfiguredError as error:
            raise TrainingError(str(error)) from error
        tokenizer = transformers.AutoTokenizer.from_pretrained(base, trust_remote_code=False)
        return cls(model, tokenizer, tokens, build_codec(folder, tokens), reading.kind)

    def group_encodings(self, encodings: Sequence[Encoding]) -> list[list[int]]:
        """Return the indices of the encodings that may share a batch, batch by batch."""
        return split_batch([len(encoding) for encoding in encodings], self.tokens.filling)

    def compute_logits(self, encodings: Sequence[Encoding]) -> "torch.Tensor":
        """Return logits [encodings, labels], or [encodings, 2, tokens] for start and end.

        Encodings that may share a batch are computed together (`ModelTokenizer.filling`).
        """
        import torch
        from torch.nn.functional import pad

        rows = run_in_parts(encodings, self.tokens, self._compute_batch_logits)
        longest = max(row.shape[-1] for row in rows)
        return torch.stack([pad(row, (0, longest - row.shape[-1])) for row in rows])

    def _compute_batch_logits(self, encodings: Sequence[ModelInput]) -> "torch.Tensor":
        import torch

        # After a short text, BigBird would keep full attention.
        restore_attention(self.model)
        arrays = build_arrays(encodings, self.tokens).items()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=has_fast_bfloat16()):
            output = self.model(**{name: torch.from_numpy(array) for name, array in arrays})
        # Start and end as two rows of logits, one for each token.
        if self.kind == SPAN:
            return torch.stack([output.start_logits, output.end_logits], dim=1).float()
        logits: torch.Tensor = output.logits.float()
        return logits

    def compute_answers(self, rows: Sequence[Row]) -> list[Answer]:
        """Return one answer for each row."""
        return [
            self.codec.decode(*row)
            for row in zip(rows, *self._compute_window_logits(rows), strict=True)
        ]

    def _compute_window_logits(
        self, rows: Sequence[Row]
    ) -> tuple[list[list[Encoding]], list[list[Logits]]]:
        """Return the windows of the rows, and the logits of each window."""
        import torch

        self.model.eval()
        # A passage that is longer than the model reads becomes several encodings, which overlap.
        encodings = [encode_row(row, self.codec) for row in rows]

        def run(pieces: Sequence[Encoding]) -> Sequence[Logits]:
            return cut_padding(self.compute_logits(pieces).numpy(), pieces, self.tokens.filling)

        with torch.inference_mode():
            return encodings, run_sorted(encodings, run)

    def calibrate_head(self, rows: Sequence[Row]) -> float:
        """Divide the head by the temperature fitted on rows that were not trained on; return it.

        Returns 1.0 if the model has no such layer.
        """
        encodings, logits = self._compute_window_logits(rows)
        scored_rows = score_windows(rows, encodings, logits, self.codec.labels)
        temperature = fit_temperature(scored_rows)
        output_count, first_window = len(self.codec.labels or ("start", "end")), encodings[0][:1]
        if divide_head(
            self.model, output_count, temperature, lambda: self.compute_logits(first_window)
        ):
            return temperature
        return 1.0

    def save(self, folder: Path, options: TrainingOptions) -> None:
        """Write the model's folder: weights, tokenizer and dynabench.json."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        settings = {
            "kind": self.kind,
            "fields": FIELDS_BY_KIND[self.kind],
            "output": OUTPUT_BY_KIND[self.kind],
            "labels": self.codec.labels,
            "max_length": options.max_length,
            "trained_on": options.trained_on,
            "seed": options.seed,
        }
        (folder / "dynabench.json").write_text(json.dumps(settings, indent=2) + "\n")


class _TrainingLoop:
    """A training run in progress: the model, the steps done, and the best epoch so far."""

    def __init__(
        self, text_model: _TextModel, options: TrainingOptions, progress: Progress, steps: int
    ) -> None:
        self.text_model, self.options, self.progress = text_model, options, progress
        self.steps, self.step = steps, 0
        self.rng = random.Random(options.seed)
        self.epoch = self.best_epoch = 0
        self.best: Mapping[str, float] = {}
        self.curve: list[Mapping[str, float]] = []

    def fit(self, train_rows: Sequence[Row], dev: Sequence[Row]) -> None:
        """Fit the head, then the head and the encoder; restore the weights of the best epoch."""
        model, options = self.text_model.model, self.options
        best_weights: Mapping[str, Any] = {}
        self.report_steps("fitting the head")
        # Before creating the optimizer, which takes only parameters that can change.
        _freeze_layers(model, options.frozen_layers)
        # The head of a span model trains with the rest from the beginning.
        if self.text_model.codec.labels:
            _start_head(self.text_model, self._draw_items(train_rows)[:HEAD_ROWS])
        self.report_steps("epoch 1")
        optimizer = _make_optimizer(model, options)
        for self.epoch in range(1, options.epochs + 1):
            loss = self._train_epoch(train_rows, optimizer)
            scores = score_answers(
                dev, self.text_model.compute_answers(dev), kind=self.text_model.kind
            )
            self.curve.append({"loss": loss, **scores})
            # Of equal epochs the later one, which has seen more data.
            if list(scores.values()) >= list(self.best.values()):
                self.best, self.best_epoch = scores, self.epoch
                state = model.state_dict()
                best_weights = {name: value.clone() for name, value in state.items()}
            words = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
            self.report_steps(f"epoch {self.epoch}: loss {loss:.2f}, dev {words}")
            if self.epoch - self.best_epoch >= options.patience:
                break
        model.load_state_dict(best_weights)

    def report_steps(self, message: str) -> None:
        """Report the steps done. The last message is repeated until there is a new one."""
        self.message = message
        self.progress(self.step, self.steps, message)

    def _draw_items(self, rows: Sequence[Row]) -> list[TrainingItem]:
        return draw_items(rows, self.text_model.codec, window=self.options.window, rng=self.rng)

    def _train_epoch(self, rows: Sequence[Row], optimizer: "torch.optim.Optimizer") -> float:
        """Train on every row of an epoch once; return the mean loss."""
        import torch

        self.text_model.model.train()
        losses: list[float] = []
        for batch in draw_batches(self._draw_items(rows), self.options.batch_size, self.rng):
            for group in optimizer.param_groups:
                # Every layer's rate follows the same curve, with its own maximum.
                group["lr"] = group["top"] * _compute_rate_factor(self.step / self.steps)
            loss = _compute_loss(self.text_model, batch, self.options.label_smoothing)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            # A single odd batch must not change the encoder too much.
            torch.nn.utils.clip_grad_norm_(self.text_model.model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            self.step += 1
            self.report_steps(self.message)
        return sum(losses) / len(losses)


def _compute_rate_factor(share: float) -> float:
    """Return the factor of the learning rate at a share of the steps: warm-up, then decay to 0."""
    return max(0.0, min(share / 0.1, (1 - share) / 0.9))


def _compute_loss(
    text_model: _TextModel, batch: Sequence[TrainingItem], smoothing: float
) -> "torch.Tensor":
    """Return the mean cross-entropy of a batch over labels, or over tokens for start and end."""
    import torch

    logits = text_model.compute_logits([item.encoding for item in batch])
    targets = torch.tensor([item.target for item in batch])
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), label_smoothing=smoothing
    )


def has_fast_bfloat16() -> bool:
    """Return whether the processor multiplies bfloat16 natively, which halves the training time."""
    import torch

    return bool(torch.cpu.get_capabilities().get("avx512_bf16"))


def _find_layer(name: str) -> int | None:
    """Return the layer number in a parameter's name; None if it contains none."""
    match = re.search(r"\.(\d+)\.", name)
    return int(match[1]) if match else None


def _freeze_layers(model: Any, layers: int) -> None:
    for name, parameter in model.named_parameters():
        number = _find_layer(name)
        parameter.requires_grad = "embeddings" not in name and (number is None or number >= layers)


def _make_optimizer(model: Any, options: TrainingOptions) -> "torch.optim.Optimizer":
    """Return AdamW with a learning rate for each layer and for the head, stored as `top`."""
    import torch

    free_parameters = [(_find_layer(n), p) for n, p in model.named_parameters() if p.requires_grad]
    top_layer = max((number or 0 for number, _ in free_parameters), default=0)
    rates: dict[float, list[Any]] = {}
    for number, parameter in free_parameters:
        if number is None:  # the head
            rate = options.head_learning_rate
        else:
            rate = options.learning_rate * options.layer_decay ** (top_layer - number)
        rates.setdefault(rate, []).append(parameter)
    groups = [{"params": parameters, "top": rate} for rate, parameters in rates.items()]
    return torch.optim.AdamW(groups, weight_decay=options.weight_decay, fused=True)


def _start_head(text_model: _TextModel, items: Sequence[TrainingItem]) -> None:
    """Fit the classifier on the frozen encoder's features before the encoder is trained.

    A random head would distort the encoder's features (Kumar et al. 2022, "Fine-tuning can distort
    pretrained features"). BERT's pooler was not pretrained here, so it starts as the identity.
    """
    import torch

    model = text_model.model
    head = getattr(model, "classifier", None)
    if not isinstance(head, torch.nn.Linear):  # one of several layers, which trains with the rest
        return
    model.eval()
    pooler = getattr(model.base_model, "pooler", None)
    pooler = getattr(pooler, "dense", None)
    if pooler is not None:
        torch.nn.init.eye_(pooler.weight)
        torch.nn.init.zeros_(pooler.bias)
    # Captures the head's inputs during the forward pass.
    head_inputs: list[torch.Tensor] = []
    hook = head.register_forward_hook(lambda _, inputs, __: head_inputs.append(inputs[0].float()))
    labels: list[int] = []
    with torch.no_grad():
        for start in range(0, len(items), 32):
            chunk = items[start : start + 32]
            for group in text_model.group_encodings([item.encoding for item in chunk]):
                text_model.compute_logits([chunk[number].encoding for number in group])
                labels += [chunk[number].target[0] for number in group]
    hook.remove()
    features, targets = torch.cat(head_inputs), torch.tensor(labels)
    weights = list(head.parameters())
    # A convex problem of few weights, which a second-order method solves in one step.
    optimizer = torch.optim.LBFGS(weights, max_iter=100, line_search_fn="strong_wolfe")

    def compute_loss() -> "torch.Tensor":
        optimizer.zero_grad()
        size = torch.stack([weight.square().sum() for weight in weights]).sum()
        value = torch.nn.functional.cross_entropy(head(features), targets)
        value = value + HEAD_PENALTY * size
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(compute_loss)  # type: ignore[no-untyped-call]
