"""From request fields to token ids, and from logits to answers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from .errors import wrong_field
from .spec import PAIR, ModelFolder

Logits = NDArray[np.float32]
MIN_ROOM = 8  # tokens the context must keep in addition to the other field
Side = Literal["left", "right"]
STRIDE = 128  # tokens that neighbouring QA windows share (the value of the SQuAD scripts)
MAX_ANSWER_TOKENS = 30


@dataclass(frozen=True)
class Answer:
    """One prediction: `output` by field name, `prob` by label (for a span, only the answer's)."""

    output: dict[str, Any]
    prob: dict[str, float]


@dataclass(frozen=True)
class Sight:
    """The tokens of a question, and the picture [3, side, side] that it is about."""

    ids: list[int]
    type_ids: list[int]
    pixels: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)


Piece = Encoding | Sight  # what a model is given at once


class Codec(ABC):
    """A codec that encodes the fields of an input into one or several encodings and decodes logits.

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
        self.cut_field, self.cut_side = folder.cut_field, cut_side
        # Settings saved with the tokenizer would cut texts a second time, at other places.
        tokenizer.no_truncation()
        tokenizer.no_padding()

    @abstractmethod
    def encode(self, row: Mapping[str, str]) -> Sequence[Piece]:
        """Return encodings of at most max_length tokens. Raises BadRequestError."""

    @abstractmethod
    def decode(
        self, row: Mapping[str, str], encodings: Sequence[Piece], logits: Sequence[Logits]
    ) -> Answer:
        """Return the answer. logits: one array per encoding."""

    def _tokens(self, text: str) -> Encoding:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def _room(self, field: str, tokens: Encoding, least: int = MIN_ROOM) -> int:
        """Return the number of tokens left for the context next to `field`.

        Raises BadRequestError for fewer than `least`.
        """
        is_pair = least > 0
        room = self.max_length - len(tokens) - self.tokenizer.num_special_tokens_to_add(is_pair)
        if room < least:
            most = len(tokens) + room - least
            cure = f"{most} fit: shorten it, or set a larger max_length."
            if most < 1:
                cure = f"the model reads {self.max_length} in all: set a larger max_length."
            raise wrong_field(field, f"has {len(tokens)} tokens; {cure}")
        return room


class LabelCodec(Codec):
    """A codec for classification: labels with probabilities, the softmax of logits [labels]."""

    def decode(
        self, row: Mapping[str, str], encodings: Sequence[Piece], logits: Sequence[Logits]
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
        text = self._tokens(row[field])
        room = self.max_length - self.tokenizer.num_special_tokens_to_add(False)
        text.truncate(max(room, 0), direction=self.cut_side)
        encoding = self.tokenizer.post_process(text)
        if not len(encoding):
            raise wrong_field(field, "has no word or sign that the model's tokenizer knows.")
        return [encoding]


class PairCodec(LabelCodec):
    """A codec for two texts in the model's order. Only the context is truncated."""

    def encode(self, row: Mapping[str, str]) -> list[Encoding]:
        texts = {field: self._tokens(row[field]) for field in self.fields}
        (other,) = (field for field in self.fields if field != self.cut_field)
        room = self._room(other, texts[other])
        texts[self.cut_field].truncate(room, direction=self.cut_side)
        first, second = texts.values()
        return [self.tokenizer.post_process(first, second)]


class PictureCodec(LabelCodec):
    """A codec for a picture, resized to the model's square, and a question if there is one."""

    def encode(self, row: Mapping[str, str]) -> list[Sight]:
        from .pictures import pixels_of  # models of texts need no Pillow

        assert self.pictures is not None
        picture, *questions = self.fields
        ids, type_ids = [0], [0]  # a picture alone counts as one token
        for question in questions:
            tokens = self._tokens(row[question])
            self._room(question, tokens, least=0)
            whole = self.tokenizer.post_process(tokens)
            ids, type_ids = whole.ids, whole.type_ids
        return [Sight(ids, type_ids, pixels_of(row[picture], picture, self.pictures))]


class SpanCodec(Codec):
    """A codec for extractive QA: the best non-empty span of at most 30 tokens in the passage.

    The passage is read in windows. Logits have the shape [2, tokens]: start and end. A span's score
    is start + end, as in Devlin et al. 2019, section 4.2; its probability is the softmax over the
    spans of all windows. The answer's offsets are code points of the passage.
    """

    def encode(self, row: Mapping[str, str]) -> list[Encoding]:
        question, passage = (self._tokens(row[field]) for field in self.fields)
        room = self._room(self.fields[0], question)
        passage.truncate(room, stride=min(STRIDE, room // 2))
        first = self.tokenizer.post_process(question, passage)
        windows = [first, *first.overflowing]
        if not any(readable(window, row[self.fields[1]]).any() for window in windows):
            raise wrong_field(self.fields[1], "has no text to answer from.")
        return windows

    def decode(
        self, row: Mapping[str, str], encodings: Sequence[Piece], logits: Sequence[Logits]
    ) -> Answer:
        passage = row[self.fields[1]]
        spans = []
        for window, scores in zip(cast("Sequence[Encoding]", encodings), logits, strict=True):
            spans.append(_best_span(scores, readable(window, passage), window.offsets))
        # Spans compare by their score first.
        best_span = max(spans)
        text = passage[best_span.start : best_span.end]
        # Tokens may begin or end with a space, which is no part of an answer.
        start = best_span.start + len(text) - len(text.lstrip())
        answer = text.strip()
        share = np.exp(best_span.score - np.logaddexp.reduce([span.total for span in spans]))
        output = {self.output: answer, "start": start, "end": start + len(answer)}
        return Answer(output, {answer: float(share)})


def readable(window: Encoding, passage: str) -> NDArray[np.bool_]:
    """Return which tokens of a window are text of the passage, so that no span is blank."""
    marks = []
    for sequence, (start, end) in zip(window.sequence_ids, window.offsets, strict=True):
        is_passage = sequence == 1  # 0 is the question, None a special token
        marks.append(is_passage and bool(passage[start:end].strip()))
    return np.array(marks)


class _Span(NamedTuple):
    """A window's best span, and the log-sum-exp of the scores of all its spans."""

    score: float
    start: int
    end: int
    total: float


def _best_span(
    scores: Logits, allowed_tokens: NDArray[np.bool_], offsets: Sequence[tuple[int, int]]
) -> _Span:
    """Return the best span between allowed tokens. Its score is -inf if there is none."""
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


def codec_for(
    folder: ModelFolder, tokenizer: Tokenizer, max_length: int, cut_side: Side = "right"
) -> Codec:
    """Return the codec for the model's kind."""
    if folder.pictures:
        return PictureCodec(folder, tokenizer, max_length)
    if folder.labels is None:
        return SpanCodec(folder, tokenizer, max_length)
    kind = PairCodec if folder.kind == PAIR else TextCodec
    return kind(folder, tokenizer, max_length, cut_side)
