"""Which groups of people a text names; and the parts of the data that are groups. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluation.contract import Number, SetRow
from evaluation.scoring.bootstrap import NAME
from evaluation.scoring.metrics import METRICS
from evaluation.scoring.metrics.base import Mean
from evaluation.scoring.perturbations.tables import GENDERED, GROUPS
from evaluation.scoring.perturbations.words import key_of, phrase_pattern
from evaluation.scoring.worst import GROUP_GAP, WORST_GROUP, comparable, gap, least
from tasks.config.schema import TaskConfig

MENTIONS = "mentions"
"""The slice by lexical group: `mentions=women`."""
GENDERS = {
    "men": frozenset(GENDERED) | {"him", "his"},
    "women": frozenset(GENDERED.values()) | {"her", "hers"},
}
Terms = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Groups:
    """The groups of a task. fields: slices whose values are groups; terms: by lexical group.

    texts: the fields in which terms are looked for: what models read, without what they answer.
    """

    fields: tuple[str, ...]
    terms: Terms
    texts: tuple[str, ...]

    def named(self, row: SetRow) -> SetRow:
        """The row with a slice for the lexical groups that its texts name."""
        if not self.terms:
            return row
        found = mentioned(row.inputs, self.texts, self.terms)
        return replace(row, slices={**row.slices, MENTIONS: tuple(found)})


def groups_of(config: TaskConfig) -> Groups:
    """The groups over which a task's models should be equally good; none without fairness.

    The owner's slices and terms; in English also men and women, and our terms without the owner's.
    """
    metrics = config.metrics
    if "fairness" not in metrics.deltas:
        return Groups((), {}, ())
    is_english = config.language.partition("-")[0] == "en"
    lists = metrics.group_terms or (GROUPS if is_english else ())
    terms = {" ".join(term.lower().split()): term for one in lists for term in one}
    lexical = {**(GENDERS if is_english else {}), **{name: frozenset({name}) for name in terms}}
    texts = tuple(name for name in config.model_fields if name != config.answer_field)
    fields = (*metrics.groups, *((MENTIONS,) if lexical else ()))
    return Groups(fields, lexical, texts)


def mentioned(inputs: Mapping[str, Any], fields: Sequence[str], terms: Terms) -> Iterator[str]:
    """The groups of which a term stands in one of the fields, as whole words in any case."""
    texts = [text for name in fields if isinstance(text := inputs.get(name), str)]
    every = phrase_pattern(frozenset().union(*terms.values()))
    words = {key_of(match[0]) for text in texts for match in every.finditer(text)}
    return (name for name, some in terms.items() if some & words)


def share_of(metrics: Sequence[str]) -> str:
    """By which of a task's metrics groups are compared: the first that is a mean over examples.

    A group may lack some labels, which makes a macro F1 look bad. Without such a metric the first.
    """
    return next((name for name in metrics if issubclass(METRICS[name], Mean)), metrics[0])


def parts_of(numbers: Sequence[Number], fields: Sequence[str], metric: str) -> list[Number]:
    """The numbers of the metric by group."""
    return [
        one
        for one in numbers
        if one.metric == metric and one.slice.partition("=")[0] in fields and one.value is not None
    ]


def group_numbers(numbers: Sequence[Number], groups: Groups, metric: str) -> list[Number]:
    """The worst group's number and the largest gap between two groups; nothing without fairness.

    Both have no value where fewer than two groups have enough examples.
    """
    if not groups.fields:
        return []
    parts = comparable(parts_of(numbers, groups.fields, metric))
    parts = parts if len(parts) > 1 else []
    return [least(WORST_GROUP, parts), gap(GROUP_GAP, parts)]


def is_in(row: SetRow, part: str) -> bool:
    """Whether a row is in a slice: `field=value`."""
    field = part.partition("=")[0]
    return any(f"{field}={one}"[:NAME] == part for one in row.slices.get(field, ()))
