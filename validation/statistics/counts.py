"""The counts behind a round's numbers: a few aggregate queries, for it or for its parts.

The database counts equal examples together; Python reads one row per kind, never the examples.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from django.db import connection
from django.db.models import (
    Case,
    CharField,
    F,
    FilteredRelation,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, Left, NullIf, TruncDay, TruncWeek

from annotation.models import Example
from tasks.config.schema import TaskConfig
from tasks.models import Round
from validation.consensus.claims import (
    ASKED_OUTCOMES,
    FOOLED_BY_OUTCOME,
    find_label_field,
    is_about_model,
)
from validation.decisions.counted import build_measure_condition, build_weight_expression
from validation.models import Consensus, Validation, Verdict, VoteDraw
from validation.rates.agreement import MAX_CHOICES
from validation.rates.rates import ComparedCounts, compare_votes
from validation.rates.round_counts import Cell, Choice, Part
from validation.rates.sampled_counts import SampledCounts
from validation.statistics.criteria import count_criteria
from validation.statistics.samples import (
    build_sampled_example,
    iterate_sampled_rows,
    tally_votes,
)
from validation.statistics.steps import count_steps

GROUPINGS = ("target", "tag", "label", "day", "week")
"""The values by which a round can be broken down.

The target that answered, the tag of the context, the author's label, and the day or the week (its
Monday) of writing.
"""
Examples = QuerySet[Any, Any]
Key = tuple[int, str | None]
"""A round's id and the value that it is broken down by; "" where it is not broken down."""


@dataclass
class RoundCounts:
    """Parts of rounds by `Key`, and the choices in the votes, in the order of the patterns."""

    parts: dict[Key, Part]
    choices: Sequence[Choice] = ()

    def get_or_create_part(self, round: int, value: str | None) -> Part:
        """Return the part of a round with this value; create it if it is missing."""
        key = round, value
        if key not in self.parts:
            self.parts[key] = Part()
        return self.parts[key]

    def get_parts_of(self, round: int) -> dict[str | None, Part]:
        """Return a round's parts by value, sorted; the part without a value comes last."""
        parts = {value: group for (pk, value), group in self.parts.items() if pk == round}
        return dict(sorted(parts.items(), key=lambda item: (not item[0], item[0] or "")))


def count_rounds(
    rounds: Sequence[Round], grouping: str | None = None, *, with_consensus: bool = True
) -> RoundCounts:
    """Count rounds of one task, or their parts by `grouping`.

    Makes four queries, two more with a sample, and two or three more for steps and for criteria.
    grouping: one of GROUPINGS. with_consensus: whether to count the stored consensus too, as cells.
    Raises ValueError for labels if the author chooses none.
    """
    counted_rounds = _build_empty_counts(rounds, grouping)
    if not rounds:  # Django cannot build SQL for an empty list
        return counted_rounds
    examples = _select_examples(rounds, grouping)
    by_people = examples.filter(by_program=False)
    _count_votes(counted_rounds, by_people)
    choices: set[Choice] = set()
    for group in counted_rounds.parts.values():
        choices |= {choice for _, choice in group.votes_by}
    # Sorted, because a pattern lists the numbers of votes in this order.
    counted_rounds.choices = sorted(choices)
    # Free texts: the query below has a column for each choice.
    if len(choices) > MAX_CHOICES:
        _count_free_patterns(counted_rounds, by_people)
    elif choices:
        config = rounds[0].task.config
        asks_about_model = is_about_model(config, Example.Outcome.UNDECIDED)
        _count_patterns(
            counted_rounds, rounds, _annotate_answers(by_people, config, grouping), asks_about_model
        )
    if with_consensus:
        _count_cells(counted_rounds, examples, grouping)
    _count_samples(counted_rounds, rounds, examples, grouping, with_consensus=with_consensus)
    # Parts of rounds show whole examples only.
    if grouping is None and rounds[0].task.config.validation.steps:
        for round_id, step_counts in count_steps(rounds).items():
            counted_rounds.get_or_create_part(round_id, "").steps = step_counts
    if grouping is None and rounds[0].task.config.verdict.type == "criteria":
        for round_id, criteria_counts in count_criteria(rounds).items():
            counted_rounds.get_or_create_part(round_id, "").criteria = criteria_counts
    return counted_rounds


def count_cells(rounds: Sequence[Round], grouping: str | None = None) -> RoundCounts:
    """Count only the stored consensus of rounds of any tasks. Two queries, one more with samples.

    grouping: as in `count_rounds`.
    """
    counted_rounds = _build_empty_counts(rounds, grouping)
    examples = _select_examples(rounds, grouping)
    _count_cells(counted_rounds, examples, grouping)
    _count_samples(counted_rounds, rounds, examples, grouping)
    return counted_rounds


def _build_empty_counts(rounds: Sequence[Round], grouping: str | None) -> RoundCounts:
    """Return empty counts. Without a breakdown, every round has a part, even without examples."""
    return RoundCounts({} if grouping else {(round.pk, ""): Part() for round in rounds})


# Queries


def _select_examples(rounds: Sequence[Round], grouping: str | None) -> Examples:
    """Select examples that are not retracted, with the columns to group by.

    If they are grouped by target, an example is selected once for each answer.
    """
    examples = Example.objects.filter(round__in=rounds, retracted_at__isnull=True).order_by()
    values: Mapping[str | None, Any] = {
        None: lambda: Value("", CharField()),
        "target": lambda: F("target_outputs__target__name"),
        "tag": build_tag_expression,
        "label": lambda: KeyTextTransform(_build_author_label(rounds[0].task.config), "inputs"),
        # The date is the first ten characters of a time as text, in both databases.
        "day": lambda: Left(Cast(TruncDay("created_at"), CharField()), 10),
        "week": lambda: Left(Cast(TruncWeek("created_at"), CharField()), 10),
    }
    return examples.annotate(
        in_round=F("round_id"),
        author=F("annotator_id"),
        value=values[grouping](),
        result=_build_result_expression(grouping),
    )


def build_tag_expression() -> Coalesce:
    """Return an expression for an example's tag: its context's, or an imported row's own."""
    # If the context's tag is empty, the tag of the row is used instead.
    of_row = Cast(KeyTextTransform("tag", "metadata"), CharField())
    return Coalesce(NullIf(F("context__tag"), Value("")), of_row, Value(""))


def _build_author_label(config: TaskConfig) -> str:
    """Return the field of the author's label. Raises ValueError if the author chooses none."""
    for name in config.target_fields:
        if config.get_labels(name):
            return name
    raise ValueError("Authors of this task choose no label, so there is nothing to break down by.")


def _build_result_expression(grouping: str | None) -> Any:
    """Return an expression for an example's outcome.

    grouping: if it is "target", the expression is the outcome against that target only.
    """
    if grouping != "target":
        return F("outcome")
    return Case(
        When(target_outputs__fooled=True, then=Value(Example.Outcome.FOOLED)),
        When(target_outputs__fooled=False, then=Value(Example.Outcome.NOT_FOOLED)),
        default=F("outcome"),
        output_field=CharField(),
    )


def _build_validated_error(grouping: str | None) -> Any:
    """Return an expression for whether an example is a validated model error.

    grouping: if it is "target", the expression is for that target only.
    """
    if grouping != "target":
        return F("consensus__is_validated_error")
    return Case(
        When(target_outputs__fooled=True, then=F("consensus__is_verified")),
        When(target_outputs__fooled=False, then=Value(False)),
        default=F("consensus__is_validated_error"),
    )


def _annotate_answers(examples: Any, config: TaskConfig, grouping: str | None) -> Any:
    """Annotate examples with the target's answer in the field that votes are about, as `said`.

    This is the first target's answer. Grouped by target, an example becomes a row for each answer.
    """
    field = find_label_field(config)
    if field is None:
        return examples.annotate(said=Value(None, CharField()))
    if grouping == "target":
        return examples.annotate(said=KeyTextTransform(field, "target_outputs__output"))
    # Only the first answer, so that each example has one row.
    first = FilteredRelation("target_outputs", condition=Q(target_outputs__position=0))
    return examples.annotate(first=first, said=KeyTextTransform(field, "first__output"))


def _count_cells(counted_rounds: RoundCounts, examples: Examples, grouping: str | None) -> None:
    """Add a count for each combination of `Cell` values to its part."""
    column_names = ("author", "result", "judged", "state", "label", "verdict", "verified", "wrong")
    names = (*column_names, "by_program", "in_round", "value")
    consensus = {name: F(f"consensus__{name}") for name in ("state", "label", "verdict")}
    columns = ", ".join(names)
    rows = _fetch_rows(
        f"SELECT {columns}, COUNT(*), SUM(excess_weight) FROM ({{examples}}) x "  # noqa: S608
        f"GROUP BY {columns}",
        examples.annotate(
            **consensus,
            judged=build_measure_condition("judged"),
            verified=F("consensus__is_verified"),
            wrong=_build_validated_error(grouping),
            excess_weight=build_weight_expression() - 1,
        ).values_list(*names, "excess_weight"),
    )
    for (
        author,
        result,
        judged,
        state,
        label,
        verdict,
        is_verified,
        is_wrong,
        *author_kind,
        case_count,
        excess_weight,
    ) in rows:
        by_program, round, value = author_kind
        if by_program:
            counted_rounds.get_or_create_part(round, value).program_examples += case_count
            continue
        cell = Cell(
            author,
            result,
            bool(judged),
            state == Consensus.State.DECIDED,
            label or verdict or "",
            bool(is_verified),
            bool(is_wrong),
        )
        part = counted_rounds.get_or_create_part(round, value)
        part.cells[cell] += case_count
        # None if no context of these examples was drawn.
        if excess_weight is not None:
            part.excess_weights[cell] = part.excess_weights.get(cell, 0) + excess_weight


def _count_votes(counted_rounds: RoundCounts, examples: Examples) -> None:
    rows = _fetch_rows(
        "SELECT x.in_round, x.value, v.validator_id, v.label, v.verdict, v.by_program, COUNT(*) "
        "FROM {votes} v JOIN ({examples}) x ON x.id = v.example_id "
        "GROUP BY v.validator_id, v.label, v.verdict, v.by_program, x.in_round, x.value",
        examples.values_list("id", "in_round", "value"),
    )
    for round, value, validator, label, verdict, by_program, case_count in rows:
        if by_program:
            counted_rounds.get_or_create_part(round, value).program_votes += case_count
        else:
            counted_rounds.get_or_create_part(round, value).votes_by[
                validator, (label, verdict)
            ] += case_count


def _count_patterns(
    counted_rounds: RoundCounts, rounds: Sequence[Round], examples: Examples, asks_about_model: bool
) -> None:
    """Add each author's examples to the counts, by pattern of votes and by the target's answer.

    A pattern is the number of votes for each choice. Only examples with votes are counted.
    asks_about_model: whether verdicts are about the model's answer.
    """
    columns = ", ".join(f"c{n}" for n in range(len(counted_rounds.choices)))
    sums = ", ".join(
        f"SUM(CASE WHEN v.label = %s AND v.verdict = %s THEN 1 ELSE 0 END) AS c{n}"
        for n in range(len(counted_rounds.choices))
    )
    names = ("author", "result", "said", "in_round", "value")
    column_list = ", ".join(names)
    round_condition = Example.objects.filter(round__in=rounds).order_by().values("id")
    examples_sql, ids = round_condition.query.sql_with_params()
    # Votes are summed before the other columns are joined, which are slower to group by. The
    # columns that differ most come first, so that fewer are compared.
    rows = _fetch_rows(
        f"SELECT {column_list}, {columns}, COUNT(*) FROM (SELECT v.example_id, {sums} "  # noqa: S608
        f"FROM {{votes}} v WHERE NOT v.by_program AND v.example_id IN ({examples_sql}) "
        "GROUP BY v.example_id) one JOIN ({examples}) x ON x.id = one.example_id "
        f"GROUP BY author, {columns}, result, said, in_round, value",
        examples.values_list("id", *names),
        list(chain.from_iterable(counted_rounds.choices)) + list(ids),
    )
    compared_patterns: dict[tuple[Any, ...], ComparedCounts] = {}
    for author, result, answer, round, value, *votes, case_count in rows:
        group, pattern = counted_rounds.get_or_create_part(round, value), tuple(votes)
        group.patterns[pattern] += case_count
        group.unanimous[author, max(pattern) == sum(pattern)] += case_count
        case = (result, answer, pattern)
        # Similar examples by different authors are compared once.
        if case not in compared_patterns:
            compared_patterns[case] = compare_votes(
                pattern,
                build_target_right(counted_rounds.choices, result, answer, asks_about_model),
            )
        group.compared[author, compared_patterns[case]] += case_count


def build_target_right(
    choices: Sequence[Choice], result: str, answer: str | None, asks_about_model: bool
) -> list[bool | None]:
    """Return for each choice whether the target is right if that choice is correct.

    None if unknown. A label is the target's answer or not. “Correct” is the author's label, which a
    target that was fooled did not give. Other verdicts do not tell which label is right.
    asks_about_model: whether verdicts are about the target's own answer.
    """
    is_fooled = FOOLED_BY_OUTCOME.get(result)
    by_verdict: dict[str, bool | None] = {}
    if asks_about_model and result in ASKED_OUTCOMES:
        by_verdict = {Verdict.CORRECT: True, Verdict.INCORRECT: False}
    elif is_fooled is not None:
        by_verdict = {Verdict.CORRECT: not is_fooled}
    is_right: list[bool | None] = []
    for label, verdict in choices:
        if not label:
            is_right.append(by_verdict.get(verdict))
        elif answer is None:  # a label says nothing about a target whose answer is unknown
            is_right.append(None)
        else:
            is_right.append(answer == label)
    return is_right


def _count_free_patterns(counted_rounds: RoundCounts, examples: Examples) -> None:
    """Add the patterns to the counts, as numbers of equal answers without the answers."""
    # Sorted by example, because `groupby` joins only adjacent rows.
    rows = _fetch_rows(
        "SELECT x.in_round, x.value, x.author, x.id, COUNT(*) FROM {votes} v "
        "JOIN ({examples}) x ON x.id = v.example_id WHERE NOT v.by_program "
        "GROUP BY x.in_round, x.value, x.author, x.id, v.label, v.verdict "
        "ORDER BY x.in_round, x.value, x.id",
        examples.values_list("id", "in_round", "value", "author"),
    )
    for (round, value, author, _), group in groupby(rows, itemgetter(0, 1, 2, 3)):
        # Only the numbers of equal answers matter, not the answers themselves.
        pattern = tuple(sorted((case_count for *_, case_count in group), reverse=True))
        counts = counted_rounds.get_or_create_part(round, value)
        counts.patterns[pattern] += 1
        counts.unanimous[author, len(pattern) == 1] += 1


def _count_samples(
    counted_rounds: RoundCounts,
    rounds: Sequence[Round],
    examples: Examples,
    grouping: str | None,
    *,
    with_consensus: bool = True,
) -> None:
    """Add every example with its draw to its part, if people judge a sample in one of the rounds.

    Usually one query. with_consensus: if False, only notes which parts are samples, because another
    policy than the stored one decides.
    """
    # An index answers this, and few rounds have any.
    left_out = VoteDraw.objects.filter(round__in=rounds, is_drawn=False).order_by()
    sampled_round_ids = set(left_out.values_list("round", flat=True).distinct())
    if not sampled_round_ids:
        return
    if not with_consensus:
        for (round_id, _), part in counted_rounds.parts.items():
            part.sample = SampledCounts(is_sampled=round_id in sampled_round_ids)
        return
    choices, asks_about_model = counted_rounds.choices, False
    tallies: dict[int, Counter[Choice]] = {}
    rows = examples.filter(by_program=False)
    # Without choices nothing is said about votes, and the rounds may be of several tasks.
    if choices and len(choices) <= MAX_CHOICES:
        config = rounds[0].task.config
        tallies = tally_votes(rounds)
        asks_about_model = is_about_model(config, Example.Outcome.UNDECIDED)
        rows = _annotate_answers(rows, config, grouping)
    else:
        rows = rows.annotate(said=Value(None, CharField()))
    for row in iterate_sampled_rows(rows, _build_validated_error(grouping)):
        part = counted_rounds.get_or_create_part(row.round_id, row.value)
        if part.sample is None:
            part.sample = SampledCounts(is_sampled=row.round_id in sampled_round_ids)
        tally = tallies.get(row.example_id, Counter())
        pattern = tuple(tally[choice] for choice in choices)
        compared = ComparedCounts()
        if sum(pattern):
            is_right = build_target_right(choices, row.result, row.answer, asks_about_model)
            compared = compare_votes(pattern, is_right)
        part.sample.examples.append(build_sampled_example(row, pattern, compared))


def _fetch_rows(
    sql: str, examples: Examples, first_parameters: Sequence[Any] = ()
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query over votes and some columns of examples.

    first_parameters: the values of the placeholders before the examples' query.
    Only table and column names are put into the SQL text; values are parameters.
    """
    inner_sql, values = examples.query.sql_with_params()
    sql = sql.format(examples=inner_sql, votes=Validation._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(sql, [*first_parameters, *values])
        # In chunks, so that not all rows are in memory at once.
        while chunk := cursor.fetchmany(2000):
            yield from chunk
