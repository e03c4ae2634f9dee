"""BLEU and chrF from sacrebleu's counts, on a scale of 0-1 instead of sacrebleu's 0-100."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from inspect import unwrap
from pathlib import Path
from typing import Any

from core.text.words import compose
from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import Metric, MetricUnavailable, Sums, divide, extract_text


class NGrams(Metric):
    """Base class of metrics of n-gram counts over the corpus. All right answers are references."""

    _counter: Any  # a metric of sacrebleu

    def compute_statistic(self, value: Any, row: SetRow) -> tuple[int, ...]:
        answer = self._split_pieces("" if value is None else compose(extract_text(value)))
        # sacrebleu expects one list per reference, with a text for each example.
        references = [[self._split_pieces(compose(extract_text(gold)))] for gold in row.gold]
        return tuple(self._counter._extract_corpus_statistics([answer], references)[0])

    def _split_pieces(self, text: str) -> str:
        return text

    def compute_vectors(self, statistics: Sequence[tuple[int, ...]]) -> Sums:
        import numpy as np

        return np.array(statistics, dtype=float)

    def grade(self, statistic: tuple[int, ...]) -> float:
        import numpy as np

        return float(np.nan_to_num(self.compute_value(self.compute_vectors([statistic]))[0]))


TOKENIZERS = {"zh": "zh", **dict.fromkeys(("ja", "ko", "th", "lo", "km", "my"), "char")}
"""sacrebleu's name of the tokenizer, by primary language. Other languages use 13a."""
BLEU_VERSIONS = {"13a": 2, "zh": 3, "char": 4}


def choose_tokenizer(language: str) -> str:
    """Return the name of sacrebleu's tokenizer for a language.

    Returns the character tokenizer where sacrebleu needs a dictionary (MeCab) or cannot split
    words.

    >>> choose_tokenizer("zh-Hant"), choose_tokenizer("de")
    ('zh', '13a')
    """
    return TOKENIZERS.get(language.partition("-")[0].lower(), "13a")


class Bleu(NGrams):
    """Corpus BLEU (Papineni et al. 2002) with sacrebleu's defaults: 13a tokens, exp smoothing.

    See Post 2018. The tokenizer depends on the task's language and is named by the version. The
    counts are: lengths of answers and references, then matches and totals of 1- to 4-grams.
    """

    name = "bleu"
    title = "BLEU"

    def __init__(
        self, labels: Sequence[str] | None, sp_model: Path | None, language: str = ""
    ) -> None:
        from sacrebleu.metrics.bleu import BLEU

        super().__init__(labels, sp_model, language)
        # force: no warnings about texts that look tokenised already.
        self._counter = BLEU(force=True, tokenize=choose_tokenizer(language))
        tokenizer = self._counter.tokenizer  # caches 65,536 texts twice, whatever their length
        if hasattr(tokenizer, "_post_tokenizer"):
            tokenizer._post_tokenizer = _strip_cache(tokenizer._post_tokenizer)
        self._counter.tokenizer = _strip_cache(tokenizer)

    @classmethod
    def get_version_for(cls, language: str) -> int:
        return BLEU_VERSIONS[choose_tokenizer(language)]

    def compute_value(self, sums: Sums) -> Sums:
        """Return BLEU by the formula of sacrebleu's `compute_bleu`, which takes only whole counts.

        Notes
        -----
        exp(min(0, 1 - r/c)) times the geometric mean of the precisions of 1- to 4-grams. A
        precision without a match counts as 1/2, 1/4 … of a match ("exp" smoothing).
        """
        import numpy as np

        length, right_length = sums[..., 0], sums[..., 1]
        matches, grams = sums[..., 2:6], sums[..., 6:]
        halvings = 2 ** (matches == 0).cumsum(axis=-1)  # smoothing: ½, ¼ … of a match
        precisions = divide(np.where(matches > 0, matches, 1 / halvings), grams, 0.0)
        brevity = np.minimum(1 - divide(right_length, length, math.inf), 0)
        is_defined = (precisions > 0).all(axis=-1) & (matches > 0).any(axis=-1)
        logs = np.log(np.where(precisions > 0, precisions, 1)).mean(axis=-1)
        scores: Sums = np.where(is_defined, np.exp(brevity + logs), 0.0)
        return np.where(length + right_length > 0, scores, np.nan)


def _strip_cache(tokenizer: Any) -> Callable[[str], str]:
    """Return the tokenizer's method without its cache."""
    return partial(unwrap(type(tokenizer).__call__), tokenizer)


class SpBleu(Bleu):
    """BLEU of SentencePiece tokens (Goyal et al. 2022, FLORES-101, section 5).

    The operator provides the SentencePiece model; FLORES-200's gives comparable scores.
    """

    name = "sp_bleu"
    title = "spBLEU"
    version = 2

    def __init__(
        self, labels: Sequence[str] | None, sp_model: Path | None, language: str = ""
    ) -> None:
        if sp_model is None or not sp_model.is_file():
            raise MetricUnavailable(
                "sp_bleu needs the SentencePiece model of FLORES-200 on this machine "
                f"({sp_model or 'SP_BLEU_MODEL'})."
            )
        from sacrebleu.metrics.bleu import BLEU
        from sentencepiece import SentencePieceProcessor

        Metric.__init__(self, labels, sp_model, language)  # not Bleu's, which sets a tokenizer
        self._counter = BLEU(tokenize="none", force=True)
        self._model = SentencePieceProcessor(model_file=str(sp_model))

    @classmethod
    def get_version_for(cls, language: str) -> int:
        return cls.version

    def _split_pieces(self, text: str) -> str:
        return " ".join(self._model.encode(text.rstrip(), out_type=str))


class ChrF(NGrams):
    """chrF: F2 of character n-grams up to 6 (Popović 2015), with sacrebleu's defaults."""

    name = "chrf"
    title = "chrF"
    version = 2
    words = 0

    def __init__(
        self, labels: Sequence[str] | None, sp_model: Path | None, language: str = ""
    ) -> None:
        from sacrebleu.metrics.chrf import CHRF

        super().__init__(labels, sp_model, language)
        self._counter = CHRF(word_order=self.words)

    def compute_value(self, sums: Sums) -> Sums:
        import numpy as np

        scores = []
        for row in sums.reshape(-1, sums.shape[-1]):
            score = np.nan
            if row.any():
                score = self._counter._compute_f_score(list(row)) / 100
            scores.append(score)
        return np.reshape(scores, sums.shape[:-1])


class ChrFpp(ChrF):
    """chrF++: chrF with word n-grams up to 2 (Popović 2017)."""

    name = "chrf_pp"
    title = "chrF++"
    words = 2
