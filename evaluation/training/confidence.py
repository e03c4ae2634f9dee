"""Score all answers that a folder's model may give to rows, as the model server computes them.

Uses float32 on every processor, unlike training (`fine_tune.has_fast_bfloat16`). So temperatures
fitted on the scores do not depend on the machine.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from tokenizers import Encoding

from evaluation.seeds import Row
from evaluation.training.calibration import ScoredRow
from evaluation.training.data import encode_row, find_span, run_sorted
from serving.backends import TorchBackend, load_model_and_filling
from serving.codecs import MAX_ANSWER_TOKENS, Logits, mark_passage_tokens
from serving.spec import ModelSpec, open_folder
from serving.tokens import build_codec


def score_rows(folder: Path, rows: Sequence[Row]) -> list[ScoredRow]:
    """Return the scores of all possible answers to text rows, with the correct answers.

    The correct answer is the row's `label`, or its `answer`. For a question, the possible answers
    are the spans that the model server may return; a row whose answer is not such a span is left
    out.
    """
    spec = ModelSpec(folder.name, str(folder), backend="torch")
    model = open_folder(spec)
    logits_of, tokens = load_model_and_filling(spec, model)
    codec, backend = build_codec(model, tokens), TorchBackend(logits_of, tokens)
    windows = [encode_row(row, codec) for row in rows]
    logits = run_sorted(windows, backend.run)
    return score_windows(rows, windows, logits, model.labels)


def score_windows(
    rows: Sequence[Row],
    windows: Sequence[Sequence[Encoding]],
    logits: Sequence[Sequence[Logits]],
    labels: Sequence[str] | None,
) -> list[ScoredRow]:
    """Return the scores of rows, computed from the logits of their windows; see `score_rows`.

    labels: in the order of the logits; None if answers are spans.
    """
    if labels is None:
        scored_rows = map(_score_spans, rows, windows, logits)
        return [row for row in scored_rows if row is not None]
    return [
        ScoredRow(values.astype(np.float64), labels.index(row["label"]))
        for row, (values,) in zip(rows, logits, strict=True)
    ]


def _score_spans(
    row: Row, windows: Sequence[Encoding], logits: Sequence[Logits]
) -> ScoredRow | None:
    """Return the scores of all spans of a passage, or None if no span has the answer's text.

    The correct span is the best-scored one with the answer's text.
    """
    scores, right_indexes = [], []
    window_offset = 0
    for window, (starts, ends) in zip(windows, logits, strict=True):
        allowed = mark_passage_tokens(window, row["passage"])
        sums = _compute_span_scores(
            np.where(allowed, starts, -np.inf), np.where(allowed, ends, -np.inf)
        )
        for first, last in _find_answer_spans(row, window):
            if last - first < len(sums):
                right_indexes.append(window_offset + (last - first) * len(window) + first)
        scores.append(sums.ravel())
        window_offset += sums.size
    flat_scores = np.concatenate(scores)
    if not right_indexes:
        return None
    best_index = max(right_indexes, key=flat_scores.__getitem__)
    is_span = np.isfinite(flat_scores)
    return ScoredRow(flat_scores[is_span], int(is_span[:best_index].sum()))


def _compute_span_scores(
    starts: Logits, ends: Logits
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return an array [tokens after the first, index of the first token] of span scores."""
    size = len(starts)
    sums = np.full((min(MAX_ANSWER_TOKENS, size), size), -np.inf)
    for extra_tokens in range(len(sums)):
        sums[extra_tokens, : size - extra_tokens] = (
            starts[: size - extra_tokens].astype(np.float64) + ends[extra_tokens:]
        )
    return sums


def _find_answer_spans(row: Row, window: Encoding) -> list[tuple[int, int]]:
    """Return (first, last) token indices of each occurrence of the answer's text in a window."""
    answer, passage = cast("str", row["answer"]), cast("str", row["passage"])
    spans = []
    start = passage.find(answer)
    while start >= 0:
        span = find_span(window, start, start + len(answer))
        if span is not None:
            spans.append(span)
        start = passage.find(answer, start + 1)
    return spans
