"""Train the target of the official task vqa: a small ViLT, from scratch, on scenes that it draws.

Questions about pictures are learned slowly from answers alone. So the training shows more of what a
scene is made of: each patch also predicts what is in its cell, and whether the question is about
it. The layer for these predictions is discarded at the end.
"""

import hashlib
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.training.calibration import ScoredRow
from evaluation.training.fine_tune import Progress, has_fast_bfloat16
from serving.codecs import Logits, PictureInput
from serving.pictures import normalise_pixels
from serving.spec import (
    FIELDS_BY_KIND,
    OUTPUT_BY_KIND,
    VISUAL_QUESTION_ANSWERING,
    ModelSpec,
    PictureSettings,
    open_folder,
)
from tasks.contexts.scenes.drawing import draw_scene
from tasks.contexts.scenes.questions import ANSWERS, Question, iter_questions
from tasks.contexts.scenes.scene import COLOURS, GRID_CELLS, SHAPES, SIZES, Scene, make_scenes

if TYPE_CHECKING:
    import torch

HELD_OUT_SEED = 1_000_003
"""The seed of scenes and questions on which no model is trained."""
CALIBRATION_SEED = 2_000_003
"""The seed of other unseen scenes and questions, which correct the model's confidence."""
MAX_TOKENS = 64
MEAN = STD = (0.5, 0.5, 0.5)
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
FEATURES = (SHAPES, COLOURS, SIZES)


@dataclass(frozen=True)
class PictureOptions:
    """The options of a picture model and of its training.

    asked: how many questions to draw for each scene. hidden: the size of the hidden layers. side:
    the height and width of a picture, in pixels. A patch is as large as a cell of a scene. Learning
    rates rise for a tenth of the steps, then fall.
    """

    seed: int = 0
    steps: int = 2000
    batch: int = 128
    asked: int = 8
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    side: int = 64


class PictureSample(NamedTuple):
    """A question with its scene."""

    scene: Scene
    question: Question


def draw_samples(seed: int, questions_per_scene: int) -> Iterator[PictureSample]:
    """Yield an endless sequence of questions, which depends only on the two arguments."""
    rng = random.Random(seed)
    # Scenes are drawn endlessly, so no question is seen twice.
    for scene in make_scenes(seed):
        for question in islice(iter_questions(scene, rng), questions_per_scene):
            yield PictureSample(scene, question)


def draw_held_out_samples(count: int, seed: int = HELD_OUT_SEED) -> list[PictureSample]:
    """Return questions that are not used in training, one for each scene."""
    return list(islice(draw_samples(seed, 1), count))


def compute_samples_digest() -> str:
    """Return a digest that changes with the grammar of questions and with the drawing of scenes."""
    digest = hashlib.sha256()
    # Enough of them to reveal a change of the grammar or the drawing.
    for scene, question in islice(draw_samples(0, 8), 2000):
        # Only values, because renaming a field does not change what is learnt.
        digest.update(draw_scene(scene).tobytes() + repr(astuple(question)).encode())
    return digest.hexdigest()


def train_pictures(
    options: PictureOptions, folder: Path, progress: Progress, *, is_blind: bool = False
) -> dict[str, Any]:
    """Train a model, write its folder and return the figures for its report.

    is_blind: whether to withhold pictures from the model, during training and afterwards.
    The same seed on the same kind of processor gives the same weights.
    """
    import torch

    started_at = perf_counter()
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        training = make_picture_training(options)
        if is_blind:
            training.disable_pictures()
        loss = training.fit(options, progress)
        training.save(folder)
    return {
        "scenes": math.ceil(options.steps * options.batch / options.asked),
        "questions": options.steps * options.batch,
        "steps": options.steps,
        "loss": loss,
        "seconds": perf_counter() - started_at,
    }


def compute_accuracy_by_kind(folder: Path, rows: Sequence[PictureSample]) -> dict[str, float]:
    """Return the accuracy of a folder's model on questions, overall and for each kind.

    Computed in torch, so the last digits of probabilities differ from the server's.
    """
    results_by_kind = defaultdict(list)
    for row, answer in zip(rows, answer_pictures(folder, rows), strict=True):
        for kind in ("accuracy", row.question.kind):
            results_by_kind[kind].append(answer == row.question.answer)
    return {kind: sum(of_kind) / len(of_kind) for kind, of_kind in results_by_kind.items()}


def answer_pictures(folder: Path, rows: Sequence[PictureSample]) -> list[str]:
    """Return the answers of a folder's model, computed in torch."""
    return [ANSWERS[int(logits.argmax())] for logits in _compute_picture_logits(folder, rows)]


def score_picture_rows(folder: Path, rows: Sequence[PictureSample]) -> list[ScoredRow]:
    """Return the scores of all possible answers to questions, with the correct answers."""
    scored_rows = []
    for row, logits in zip(rows, _compute_picture_logits(folder, rows), strict=True):
        right = ANSWERS.index(row.question.answer)
        scored_rows.append(ScoredRow(logits.astype(np.float64), right))
    return scored_rows


def _compute_picture_logits(folder: Path, rows: Sequence[PictureSample]) -> list[Logits]:
    """Return the logits of ANSWERS to each question."""
    from serving.backends import TorchBackend, load_torch_model
    from serving.tokens import read_tokenizer

    spec = ModelSpec(folder.name, str(folder), backend="torch")
    model = open_folder(spec)
    tokens = read_tokenizer(spec, model)
    backend = TorchBackend(load_torch_model(spec, model), tokens)
    assert model.pictures is not None
    all_logits: list[Logits] = []
    for start in range(0, len(rows), 64):
        pieces = []
        for scene, question in rows[start : start + 64]:
            encoding = tokens.tokenizer.encode(question.text)
            pixels = normalise_pixels(draw_scene(scene), model.pictures)
            pieces.append(PictureInput(encoding.ids, encoding.type_ids, pixels))
        all_logits += backend.run(pieces)
    return all_logits


def make_picture_training(options: PictureOptions) -> "PictureTraining":
    """Return a new model with its tokenizer."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, ViltConfig, ViltForQuestionAnswering

    plain_tokenizer = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(_list_vocabulary())}, "[UNK]")
    )
    plain_tokenizer.normalizer = normalizers.Lowercase()
    plain_tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    # In the order of SPECIAL, whose positions are the ids.
    end_tokens = [(word, SPECIAL_TOKENS.index(word)) for word in ("[CLS]", "[SEP]")]
    plain_tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", None, end_tokens
    )
    config = ViltConfig(
        vocab_size=plain_tokenizer.get_vocab_size(),
        hidden_size=options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        intermediate_size=2 * options.hidden,
        image_size=options.side,
        patch_size=options.side // GRID_CELLS,
        max_position_embeddings=MAX_TOKENS,
        # Samples are always new, so nothing can be learned by heart.
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(ANSWERS)),
        label2id={answer: number for number, answer in enumerate(ANSWERS)},
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain_tokenizer,
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "attention_mask"],
        **{f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")},
    )
    return PictureTraining(ViltForQuestionAnswering(config), tokenizer)


def _list_vocabulary() -> tuple[str, ...]:
    """Return the special tokens, then the grammar's words as the tokenizer splits them."""
    words: set[str] = set()
    for sample in islice(draw_samples(0, 8), 8000):
        words.update(sample.question.text.lower().replace("?", " ?").split())
    return (*SPECIAL_TOKENS, *sorted(words))


class _Batch(NamedTuple):
    """The arrays of a training batch.

    cells [batch, cells, 3]: feature values counted from 1; 0 for an empty cell. relevance [batch,
    cells, 2]: two flags. The first says whether the answer follows from the cell, the second
    whether the cell is a landmark that says where to look.
    """

    ids: NDArray[np.int64]
    pixels: NDArray[np.float32]
    answers: NDArray[np.int64]
    cells: NDArray[np.int64]
    relevance: NDArray[np.float32]


class PictureTraining:
    """A ViLT model with its tokenizer, to be trained or saved untrained."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer, self.is_blind = model, tokenizer, False
        self.pictures = PictureSettings(model.config.image_size, MEAN, STD)

    def disable_pictures(self) -> None:
        """Make the model ignore pictures by setting its picture weights to 0, where they stay."""
        # Also resets its gradients: pictures of 0 have none.
        self.model.vilt.embeddings.patch_embeddings.projection.weight.data.zero_()
        self.is_blind = True

    def save(self, folder: Path) -> None:
        """Write the weights, the tokenizer and the settings."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        spec = {
            "kind": VISUAL_QUESTION_ANSWERING,
            "fields": FIELDS_BY_KIND[VISUAL_QUESTION_ANSWERING],
            "output": OUTPUT_BY_KIND[VISUAL_QUESTION_ANSWERING],
            "labels": ANSWERS,
            "max_length": MAX_TOKENS,
            "trained_on": "scenes that tasks/contexts/scenes draws",
        }
        processor = _make_processor_settings(self.model.config)
        for name, values in (("dynabench", spec), ("preprocessor_config", processor)):
            (folder / f"{name}.json").write_text(json.dumps(values, indent=2) + "\n")

    def fit(self, options: PictureOptions, progress: Progress) -> float:
        """Train the model, and return the mean loss of the answers over the last steps."""
        import torch

        # One output more than a feature has values, for an empty cell; two for `relevance`.
        outputs = sum(len(feature) + 1 for feature in FEATURES) + 2
        hints = torch.nn.Linear(options.hidden, outputs)
        parameters = list(self.model.parameters()) + list(hints.parameters())
        optimizer = torch.optim.AdamW(
            parameters, options.learning_rate, (0.9, 0.98), weight_decay=options.weight_decay
        )
        # Up for a tenth of the steps, then down to nearly 0.
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, options.learning_rate, total_steps=options.steps, pct_start=0.1
        )
        # The loss starts at that of a guess among all answers, and is smoothed from there.
        samples, recent_loss = draw_samples(options.seed, options.asked), math.log(len(ANSWERS))
        self.model.train()
        for step in range(options.steps):
            batch = self._build_batch(list(islice(samples, options.batch)))
            loss, hint_loss = self._compute_losses(batch, hints)
            optimizer.zero_grad()
            (loss + hint_loss).backward()
            # A single odd batch must not change the model too much.
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            scheduler.step()
            recent_loss += 0.02 * (loss.item() - recent_loss)
            progress(step + 1, options.steps, f"loss {recent_loss:.2f}")
        self.model.eval()
        return recent_loss

    def _compute_losses(
        self, batch: _Batch, hints: "torch.nn.Linear"
    ) -> tuple["torch.Tensor", Any]:
        """Return the loss of the answers and the loss of the hints."""
        import torch
        from torch.nn import functional as f

        # The last three arrays of a batch; the first two are what the model reads.
        answers, cells, relevance = map(torch.from_numpy, batch[2:])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=has_fast_bfloat16()):
            logits, states = self._forward(batch)
            hint_logits = hints(states[:, -GRID_CELLS * GRID_CELLS :]).float()
        hint_loss = 20 * f.binary_cross_entropy_with_logits(hint_logits[..., -2:], relevance)
        feature_logits = hint_logits[..., :-2].split([len(feature) + 1 for feature in FEATURES], -1)
        for number, values in enumerate(feature_logits):
            hint_loss += f.cross_entropy(values.flatten(0, 1), cells[..., number].flatten())
        return f.cross_entropy(logits, answers), 0.3 * hint_loss

    def compute_logits(self, rows: Sequence[PictureSample]) -> "torch.Tensor":
        """Return the logits of every answer to each question."""
        return self._forward(self._build_batch(rows))[0]

    def _forward(self, batch: _Batch) -> tuple["torch.Tensor", "torch.Tensor"]:
        """Return the logits of the answers, and the last hidden states of tokens and patches."""
        import torch

        from serving.vilt import embed_pictures

        token_ids, pixels = map(torch.from_numpy, batch[:2])
        # Our own embedding of pictures, as the model server computes it.
        image_embeddings = embed_pictures(self.model, pixels)
        output = self.model.vilt(
            input_ids=token_ids,
            attention_mask=(token_ids != 0).long(),
            image_embeds=image_embeddings,
            pixel_mask=torch.ones(image_embeddings.shape[:2], dtype=torch.long),
        )
        return self.model.classifier(output.pooler_output).float(), output.last_hidden_state

    def _build_batch(self, rows: Sequence[PictureSample]) -> _Batch:
        token_lists = [
            self.tokenizer.backend_tokenizer.encode(row.question.text).ids for row in rows
        ]
        token_ids = np.zeros((len(rows), max(map(len, token_lists))), np.int64)
        for number, row in enumerate(token_lists):
            token_ids[number, : len(row)] = row
        # Each scene is drawn once, although there are several questions about it.
        pixels = {
            id(row.scene): normalise_pixels(draw_scene(row.scene), self.pictures) for row in rows
        }
        images, answers, cells, relevance = [], [], [], []
        for row in rows:
            images.append(pixels[id(row.scene)] * (not self.is_blind))
            answers.append(ANSWERS.index(row.question.answer))
            cells.append(_make_cell_features(row.scene))
            relevance.append(_make_relevance(row.question))
        return _Batch(
            token_ids, np.stack(images), np.array(answers), np.stack(cells), np.stack(relevance)
        )


def _make_cell_features(scene: Scene) -> NDArray[np.int64]:
    """Return shape, colour and size in each cell, counted from 1; 0 in an empty cell."""
    cells = np.zeros((GRID_CELLS * GRID_CELLS, len(FEATURES)), np.int64)
    for figure in scene.figures:
        cell = figure.row * GRID_CELLS + figure.column
        for number, name in enumerate((figure.shape, figure.colour, figure.size)):
            cells[cell, number] = FEATURES[number].index(name) + 1
    return cells


def _make_relevance(question: Question) -> NDArray[np.float32]:
    """Return for each cell whether the answer follows from it, and whether it is a landmark."""
    relevance = np.zeros((GRID_CELLS * GRID_CELLS, 2), np.float32)
    for number, figures in enumerate((question.about, question.marks)):
        for figure in figures:
            relevance[figure.row * GRID_CELLS + figure.column, number] = 1
    return relevance


def _make_processor_settings(config: Any) -> Mapping[str, Any]:
    """Return settings with which transformers preprocesses a square picture as our server does."""
    return {
        "image_processor_type": "ViltImageProcessor",
        "do_normalize": True, "do_pad": True, "do_rescale": True, "do_resize": True,
        "image_mean": MEAN, "image_std": STD, "rescale_factor": 1 / 255,
        "resample": 3, "size": {"shortest_edge": config.image_size},
        "size_divisor": config.patch_size,
    }  # fmt: skip
