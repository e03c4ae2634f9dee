"""Find which groups of people a text names, and the parts of the data that are groups. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluation.contract import Number, SetRow
from evaluation.scoring.bootstrap import MAX_SLICE_NAME_CHARS
from evaluation.scoring.metrics import METRICS
from evaluation.scoring.metrics.base import Mean
from evaluation.scoring.perturbations.tables import GENDERED, GROUPS
from evaluation.scoring.perturbations.words import make_key, make_phrase_pattern
from evaluation.scoring.worst import (
    GROUP_GAP,
    WORST_GROUP,
    compute_gap,
    compute_least,
    select_comparable,
)
from tasks.config.schema import TaskConfig

MENTIONS = "mentions"
"""The slice field of lexical groups, as in `mentions=women`."""
GENDERS = {
    "men": frozenset(GENDERED) | {"him", "his"},
    "women": frozenset(GENDERED.values()) | {"her", "hers"},
}
Terms = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class GroupDefinitions:
    """The groups of people over which a task's models are compared.

    fields: the slice fields whose values are groups. terms: the terms of each lexical group. texts:
    the input fields in which terms are searched, without the answer field.
    """

    fields: tuple[str, ...]
    terms: Terms
    texts: tuple[str, ...]

    def add_mentions(self, row: SetRow) -> SetRow:
        """Return the row with an added slice that lists the lexical groups its texts mention."""
        if not self.terms:
            return row
        groups = find_mentioned_groups(row.inputs, self.texts, self.terms)
        return replace(row, slices={**row.slices, MENTIONS: tuple(groups)})


def read_groups(config: TaskConfig) -> GroupDefinitions:
    """Return the groups over which a task's models should be equally good; empty without fairness.

    These are the owner's slices and terms. English tasks also have men and women, and the built-in
    terms if the owner lists none.
    """
    metrics = config.metrics
    if "fairness" not in metrics.deltas:
        return GroupDefinitions((), {}, ())
    # Our own terms are English.
    is_english = config.language.partition("-")[0] == "en"
    terms_by_group: dict[str, frozenset[str]] = dict(GENDERS) if is_english else {}
    our_terms = GROUPS if is_english else ()
    for terms in metrics.group_terms or our_terms:
        for term in terms:
            name = make_key(term)  # normalised like texts; else a term with ’ would never match
            terms_by_group[name] = frozenset({name})  # each term is its own group
    texts = tuple(name for name in config.model_fields if name != config.answer_field)
    fields = tuple(metrics.groups)
    if terms_by_group:
        fields += (MENTIONS,)
    return GroupDefinitions(fields, terms_by_group, texts)


def find_mentioned_groups(
    inputs: Mapping[str, Any], fields: Sequence[str], terms: Terms
) -> Iterator[str]:
    """Yield the groups whose terms occur in one of the fields as whole words, in any case.

    Parameters
    ----------
    inputs
        The model's inputs, by field.
    fields
        The fields to search.
    terms
        The terms of each group in the form of `make_key`: lower case, straight apostrophes, single
        spaces. Terms in any other form never match.
    """
    # One pattern for all groups, so that each text is read once.
    pattern = make_phrase_pattern(frozenset().union(*terms.values()))
    words: set[str] = set()
    for name in fields:
        text = inputs.get(name)
        if isinstance(text, str):
            words.update(make_key(match[0]) for match in pattern.finditer(text))
    return (group for group, group_terms in terms.items() if group_terms & words)


def choose_group_metric(metrics: Sequence[str]) -> str:
    """Return the metric by which groups are compared: the first one that is a mean over examples.

    If none is a mean, return the first metric. Means are preferred because a macro F1 looks bad for
    groups in which some labels do not occur. A mean of errors is left out: the worst group would be
    the one with the fewest.
    """
    for name in metrics:
        metric = METRICS[name]
        if issubclass(metric, Mean) and metric.higher_is_better:
            return name
    return metrics[0]


def select_group_numbers(
    numbers: Sequence[Number], fields: Sequence[str], metric: str
) -> list[Number]:
    """Return a metric's numbers, one for each group.

    Parameters
    ----------
    numbers
        All numbers of a run.
    fields
        The slice fields whose values are groups.
    metric
        The metric by which groups are compared.
    """
    group_numbers = []
    for number in numbers:
        field = number.slice.partition("=")[0]
        if number.metric == metric and field in fields and number.value is not None:
            group_numbers.append(number)
    return group_numbers


def compute_group_numbers(
    numbers: Sequence[Number], groups: GroupDefinitions, metric: str
) -> list[Number]:
    """Return the worst group's number and the largest gap between groups; empty without fairness.

    Both numbers lack a value if fewer than two groups have enough examples.

    Parameters
    ----------
    numbers
        All numbers of a run.
    groups
        The task's groups.
    metric
        The metric by which groups are compared.
    """
    if not groups.fields:
        return []
    group_numbers = select_comparable(select_group_numbers(numbers, groups.fields, metric))
    if len(group_numbers) < 2:
        group_numbers = []  # a single group is not the worst of anything
    return [compute_least(WORST_GROUP, group_numbers), compute_gap(GROUP_GAP, group_numbers)]


def is_in_slice(row: SetRow, slice_name: str) -> bool:
    """Return whether a row is in a slice, given as `field=value`."""
    field = slice_name.partition("=")[0]
    return any(
        f"{field}={value}"[:MAX_SLICE_NAME_CHARS] == slice_name
        for value in row.slices.get(field, ())
    )
