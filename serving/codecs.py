"""Encode request fields as token ids, and decode logits to answers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from .errors import build_wrong_field_error
from .spec import PAIR, ModelFolder

Logits = NDArray[np.float32]
MIN_CONTEXT_TOKENS = 8  # tokens the context must keep in addition to the other field
Side = Literal["left", "right"]
STRIDE_TOKENS = 128  # tokens that neighbouring QA windows share (the value of the SQuAD scripts)
MAX_ANSWER_TOKENS = 30


@dataclass(frozen=True)
class Answer:
    """A prediction.

    output: values by field name. prob: probabilities by label; for a span, only the answer's.
    """

    output: dict[str, Any]
    prob: dict[str, float]


@dataclass(frozen=True)
class PictureInput:
    """The tokens of a question and the pixels [3, side, side] of its picture."""

    ids: list[int]
    type_ids: list[int]
    pixels: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)


ModelInput = Encoding | PictureInput  # what a model is given at once


class Codec(ABC):
    """A codec that encodes an input's fields as one or several encodings, and decodes logits.

    `max_length` counts tokens, special ones included; longer texts lose their end, or their start
    if `cut_side` is "left". The codec truncates and the backend pads, so both are disabled in the
    tokenizer, which can then serve several threads.
    """

    def __init__(
        self, folder: ModelFolder, tokenizer: Tokenizer, max_length: int, cut_side: Side = "right"
    ) -> None:
        self.fields, self.output, self.labels = folder.fields, folder.output, folder.labels
        self.tokenizer, self.max_length = tokenizer, max_length
        self.pictures = folder.pictures
        self.truncated_field, self.cut_side = folder.truncated_field, cut_side
        # Settings saved with the tokenizer would cut texts a second time, at other places.
        tokenizer.no_truncation()
        tokenizer.no_padding()

    @abstractmethod
    def encode(self, row: Mapping[str, str]) -> Sequence[ModelInput]:
        """Return encodings of at most max_length tokens. Raises BadRequestError."""

    @abstractmethod
    def decode(
        self, row: Mapping[str, str], encodings: Sequence[ModelInput], logits: Sequence[Logits]
    ) -> Answer:
        """Return the answer. logits: one array per encoding."""

    def _encode_text(self, text: str) -> Encoding:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def _find_room(self, field: str, tokens: Encoding, min_tokens: int = MIN_CONTEXT_TOKENS) -> int:
        """Return the number of tokens left for the context next to `field`.

        Raises BadRequestError for fewer than `min_tokens`.
        """
        is_pair = min_tokens > 0
        free_tokens = (
            self.max_length - len(tokens) - self.tokenizer.num_special_tokens_to_add(is_pair)
        )
        if free_tokens < min_tokens:
            max_tokens = len(tokens) + free_tokens - min_tokens
            advice = f"{max_tokens} fit: shorten it, or set a larger max_length."
            if max_tokens < 1:
                advice = f"the model reads {self.max_length} in all: set a larger max_length."
            raise build_wrong_field_error(field, f"has {len(tokens)} tokens; {advice}")
        return free_tokens


class LabelCodec(Codec):
    """A codec for classification. Its probabilities are the softmax of logits [labels]."""

    def decode(
        self, row: Mapping[str, str], encodings: Sequence[ModelInput], logits: Sequence[Logits]
    ) -> Answer:
        assert self.labels is not None
        scores = logits[0].tolist()  # numpy is slower on so few
        highest = max(scores)
        # The highest is subtracted so that no power overflows.
        powers = [math.exp(score - highest) for score in scores]
        total = sum(powers)
        prob = {label: power / total for label, power in zip(self.labels, powers, strict=True)}
        return Answer({self.output: max(prob, key=prob.__getitem__)}, prob)


class TextCodec(LabelCodec):
    """A codec for one text, which is truncated."""

    def encode(self, row: Mapping[str, str]) -> list[Encoding]:
        field = self.fields[0]
        text = self._encode_text(row[field])
        free_tokens = self.max_length - self.tokenizer.num_special_tokens_to_add(False)
        text.truncate(max(free_tokens, 0), direction=self.cut_side)
        encoding = self.tokenizer.post_process(text)
        if not len(encoding):
            raise build_wrong_field_error(
                field, "has no word or sign that the model's tokenizer knows."
            )
        return [encoding]


class PairCodec(LabelCodec):
    """A codec for two texts in the model's order. Only the context is truncated."""

    def encode(self, row: Mapping[str, str]) -> list[Encoding]:
        texts = {field: self._encode_text(row[field]) for field in self.fields}
        (other_field,) = (field for field in self.fields if field != self.truncated_field)
        free_tokens = self._find_room(other_field, texts[other_field])
        texts[self.truncated_field].truncate(free_tokens, direction=self.cut_side)
        first, second = texts.values()
        return [self.tokenizer.post_process(first, second)]


class PictureCodec(LabelCodec):
    """A codec for a picture, resized to the model's square, and its question, if any."""

    def encode(self, row: Mapping[str, str]) -> list[PictureInput]:
        from .pictures import read_pixels  # models of texts need no Pillow

        assert self.pictures is not None
        picture, *questions = self.fields
        ids, type_ids = [0], [0]  # a picture alone counts as one token
        for question in questions:
            tokens = self._encode_text(row[question])
            self._find_room(question, tokens, min_tokens=0)
            encoding = self.tokenizer.post_process(tokens)
            ids, type_ids = encoding.ids, encoding.type_ids
        return [PictureInput(ids, type_ids, read_pixels(row[picture], picture, self.pictures))]


class SpanCodec(Codec):
    """A codec for extractive QA: the best non-empty span of at most 30 tokens in the passage.

    The passage is read in windows. Logits have the shape [2, tokens]: start and end. A span's score
    is start + end, as in Devlin et al. 2019, section 4.2; its probability is the softmax over the
    spans of all windows. The answer's offsets are code points of the passage.
    """

    def encode(self, row: Mapping[str, str]) -> list[Encoding]:
        question, passage = (self._encode_text(row[field]) for field in self.fields)
        free_tokens = self._find_room(self.fields[0], question)
        passage.truncate(free_tokens, stride=min(STRIDE_TOKENS, free_tokens // 2))
        first = self.tokenizer.post_process(question, passage)
        windows = [first, *first.overflowing]
        if not any(mark_passage_tokens(window, row[self.fields[1]]).any() for window in windows):
            raise build_wrong_field_error(self.fields[1], "has no text to answer from.")
        return windows

    def decode(
        self, row: Mapping[str, str], encodings: Sequence[ModelInput], logits: Sequence[Logits]
    ) -> Answer:
        passage = row[self.fields[1]]
        spans = []
        for window, scores in zip(cast("Sequence[Encoding]", encodings), logits, strict=True):
            spans.append(
                _find_best_span(scores, mark_passage_tokens(window, passage), window.offsets)
            )
        # Spans compare by their score first.
        best_span = max(spans)
        text = passage[best_span.start : best_span.end]
        # Tokens may begin or end with a space, which is no part of an answer.
        start = best_span.start + len(text) - len(text.lstrip())
        answer = text.strip()
        probability = np.exp(best_span.score - np.logaddexp.reduce([span.total for span in spans]))
        output = {self.output: answer, "start": start, "end": start + len(answer)}
        return Answer(output, {answer: float(probability)})


def mark_passage_tokens(window: Encoding, passage: str) -> NDArray[np.bool_]:
    """Return for each token of a window whether it is a non-blank part of the passage."""
    marks = []
    for sequence, (start, end) in zip(window.sequence_ids, window.offsets, strict=True):
        is_passage = sequence == 1  # 0 is the question, None a special token
        marks.append(is_passage and bool(passage[start:end].strip()))
    return np.array(marks)


class _Span(NamedTuple):
    """The best span of a window. total: the log-sum-exp of the scores of all its spans."""

    score: float
    start: int
    end: int
    total: float


def _find_best_span(
    scores: Logits, allowed_tokens: NDArray[np.bool_], offsets: Sequence[tuple[int, int]]
) -> _Span:
    """Return the best span between allowed tokens. Its score is -inf if there is none.

    scores [2, tokens]: of starts and ends.
    """
    starts, ends = np.where(allowed_tokens, scores.astype(np.float64), -np.inf)
    best_span = _Span(-np.inf, 0, 0, -np.inf)
    total = -np.inf
    # For each length, the sums of all starts and their ends at once.
    for extra_tokens in range(min(MAX_ANSWER_TOKENS, len(starts))):
        sums = starts[: len(starts) - extra_tokens] + ends[extra_tokens:]
        total = np.logaddexp(total, np.logaddexp.reduce(sums))
        first = int(sums.argmax())
        if sums[first] > best_span.score:
            best_span = _Span(
                float(sums[first]), offsets[first][0], offsets[first + extra_tokens][1], 0.0
            )
    return best_span._replace(total=float(total))


def choose_codec(
    folder: ModelFolder, tokenizer: Tokenizer, max_length: int, cut_side: Side = "right"
) -> Codec:
    """Return the codec for the model's kind."""
    if folder.pictures:
        return PictureCodec(folder, tokenizer, max_length)
    if folder.labels is None:
        return SpanCodec(folder, tokenizer, max_length)
    codec_class = PairCodec if folder.kind == PAIR else TextCodec
    return codec_class(folder, tokenizer, max_length, cut_side)
