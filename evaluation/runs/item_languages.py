"""Compare the languages of a set from stored answers. Loads numpy and scipy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from core.text.languages import is_language_tag
from evaluation.contract import SetRow
from evaluation.models import EvaluationSetVersion, ItemFit, ItemLanguage, ItemProperty
from evaluation.runs.whole_models import identify_whole_models
from evaluation.scoring.ruler.languages import (
    IncomparableLanguages,
    LanguageComparison,
    compare_languages,
)
from evaluation.scoring.ruler.response_model import ItemProperties

LANGUAGE_FIELD, TAG_FIELD = "language", "tag"


@dataclass(frozen=True)
class SetLanguages:
    """The language of each item of a set, and how they compare.

    comparison: None if they can't be compared; why_not is then a `WhyNotCompared`.
    """

    languages: Sequence[str]
    comparison: LanguageComparison | None
    why_not: str = ""

    def describe(self, items: Sequence[ItemProperty]) -> None:
        """Set the columns of these items, in the order of the set, that tell of languages."""
        for place, item in enumerate(items):
            item.language = self.languages[place]
            if self.comparison is None:
                continue
            shift = float(self.comparison.item_shifts[place])
            # NaN: it has no translation, or no model had only one of the two right.
            if not np.isnan(shift):
                item.translation_shift = shift
                item.translation_shift_error = float(self.comparison.item_errors[place])
                item.differs_from_translation = bool(self.comparison.is_flagged[place])

    def build_rows(self, fit: ItemFit) -> list[ItemLanguage]:
        """Return the rows of the compared languages, not stored."""
        shifts = self.comparison.shifts if self.comparison else ()
        # The names of the columns are those of the rule's values.
        return [
            ItemLanguage(fit=fit, number=number, **vars(shift))
            for number, shift in enumerate(shifts)
        ]


def compare_set_languages(
    version: EvaluationSetVersion,
    rows: Sequence[SetRow],
    is_right: NDArray[np.bool_],
    model_ids: Sequence[UUID],
    properties: ItemProperties,
) -> SetLanguages:
    """Return the languages of a version's items and how hard they are for models. One query.

    is_right: one row for each of the models, one column for each row of the set.
    """
    main_language = version.evaluation_set.task.config.language
    languages = read_languages(rows, main_language)
    # A set that can't be compared is the usual case, so it is a value here and no failure.
    try:
        comparison = compare_languages(
            is_right,
            languages,
            [row.uid for row in rows],
            main_language,
            identify_whole_models(model_ids),
            properties.intercepts,
        )
    except IncomparableLanguages as error:
        return SetLanguages(languages, None, error.reason)
    return SetLanguages(languages, comparison)


def read_languages(rows: Sequence[SetRow], main_language: str) -> list[str]:
    """Return the language of each row; the task's own where a row names none.

    It is the value of `language` among the row's slices or fields. If no row has one, tags count,
    as long as all of them are languages.
    """
    # The slice first: it is there for a column of an uploaded file, which models don't read.
    named = [_find_single(row.slices, LANGUAGE_FIELD, row.inputs) for row in rows]
    if not any(named):
        named = [_find_single(row.slices, TAG_FIELD, {}) for row in rows]
    # If any value is no language, such as a topic, they mean something else in this task.
    if not all(is_language_tag(name) for name in named if name):
        return [main_language] * len(rows)
    return [name or main_language for name in named]


def _find_single(slices: Mapping[str, Sequence[str]], field: str, inputs: Mapping[str, Any]) -> str:
    """Return the one text that a row has in a field; "" for none, or for several."""
    values: Sequence[Any] = slices.get(field) or [inputs.get(field)]
    return str(values[0]) if len(values) == 1 and isinstance(values[0], str) else ""
