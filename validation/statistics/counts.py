"""The counts behind a round's numbers: a few aggregate queries, for it or for its parts.

The database counts alike examples together; Python sees one row for each kind of them, never the
examples.
"""

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
from validation.consensus.claims import ASKED, FOOLED_BY_OUTCOME, find_label_field, is_about_model
from validation.decisions.counted import is_counted
from validation.models import Consensus, Validation, Verdict
from validation.rates.agreement import MOST_CHOICES
from validation.rates.rates import Compared, compare
from validation.rates.round_counts import Cell, Choice, Part

BY = ("target", "tag", "label", "day", "week")
"""What a round can be broken down by: the target that answered, the tag of the context, the
author's label, the day or week (its Monday) of writing."""
Examples = QuerySet[Any, Any]
Key = tuple[int, str | None]
"""A round's id and the value that it is broken down by; "" where it is not broken down."""


@dataclass
class Counted:
    """Parts of rounds by `Key`, and the choices in the votes, in the order of the patterns."""

    parts: dict[Key, Part]
    choices: Sequence[Choice] = ()

    def part(self, round: int, value: str | None) -> Part:
        """Return the part of a round with this value; create it if it is missing."""
        key = round, value
        if key not in self.parts:
            self.parts[key] = Part()
        return self.parts[key]

    def of(self, round: int) -> dict[str | None, Part]:
        """Return a round's parts by value, sorted; the part without a value comes last."""
        parts = {value: group for (pk, value), group in self.parts.items() if pk == round}
        return dict(sorted(parts.items(), key=lambda item: (not item[0], item[0] or "")))


def count(rounds: Sequence[Round], by: str | None = None, *, stored: bool = True) -> Counted:
    """Count rounds of one task, or their parts `by` one of BY. Three queries.

    stored: include the cells, which count the stored consensus. Raises ValueError for labels if the
    author chooses none.
    """
    counted_rounds = _start_counts(rounds, by)
    if not rounds:  # Django has no SQL for the examples of none
        return counted_rounds
    examples = _examples(rounds, by)
    by_people = examples.filter(by_program=False)
    _count_votes(counted_rounds, by_people)
    choices: set[Choice] = set()
    for group in counted_rounds.parts.values():
        choices |= {choice for _, choice in group.votes_by}
    # Sorted, as a pattern is the numbers of votes in this order.
    counted_rounds.choices = sorted(choices)
    # Free texts: the query below has a column for each choice.
    if len(choices) > MOST_CHOICES:
        _count_free_patterns(counted_rounds, by_people)
    elif choices:
        config = rounds[0].task.config
        about = is_about_model(config, Example.Outcome.UNDECIDED)
        _count_patterns(counted_rounds, rounds, _with_answers(by_people, config, by), about)
    if stored:
        _count_cells(counted_rounds, examples, by)
    return counted_rounds


def count_cells(rounds: Sequence[Round], by: str | None = None) -> Counted:
    """Count only the stored consensus of rounds of any tasks. One query. by: as in `count`."""
    counted = _start_counts(rounds, by)
    _count_cells(counted, _examples(rounds, by), by)
    return counted


def _start_counts(rounds: Sequence[Round], by: str | None) -> Counted:
    """Start the counts. Without a breakdown, a round without examples gets a part too."""
    return Counted({} if by else {(round.pk, ""): Part() for round in rounds})


# Queries


def _examples(rounds: Sequence[Round], by: str | None) -> Examples:
    """Select examples that are not retracted, with the columns to group by.

    By target, an example is selected once for each answer.
    """
    examples = Example.objects.filter(round__in=rounds, retracted_at__isnull=True).order_by()
    values: Mapping[str | None, Any] = {
        None: lambda: Value("", CharField()),
        "target": lambda: F("target_outputs__target__name"),
        "tag": tag_of,
        "label": lambda: KeyTextTransform(_author_label(rounds[0].task.config), "inputs"),
        # The date is the first ten characters of a time as text, in both databases.
        "day": lambda: Left(Cast(TruncDay("created_at"), CharField()), 10),
        "week": lambda: Left(Cast(TruncWeek("created_at"), CharField()), 10),
    }
    return examples.annotate(
        in_round=F("round_id"), author=F("annotator_id"), value=values[by](), result=_result(by)
    )


def tag_of() -> Coalesce:
    """Return an expression for an example's tag: its context's, or an imported row's own."""
    # A context without a tag has an empty text; then the tag of the row takes its place.
    of_row = Cast(KeyTextTransform("tag", "metadata"), CharField())
    return Coalesce(NullIf(F("context__tag"), Value("")), of_row, Value(""))


def _author_label(config: TaskConfig) -> str:
    """Return the field of the author's label. Raises ValueError if the author chooses none."""
    for name in config.target_fields:
        if config.labels(name):
            return name
    raise ValueError("Authors of this task choose no label, so there is nothing to break down by.")


def _result(by: str | None) -> Any:
    """Return an expression for an example's outcome.

    by: if it is "target", the expression is the outcome against that target only.
    """
    if by != "target":
        return F("outcome")
    return Case(
        When(target_outputs__fooled=True, then=Value(Example.Outcome.FOOLED)),
        When(target_outputs__fooled=False, then=Value(Example.Outcome.NOT_FOOLED)),
        default=F("outcome"),
        output_field=CharField(),
    )


def _validated_error(by: str | None) -> Any:
    """Return an expression for a validated model error; by target, of this target."""
    if by != "target":
        return F("consensus__is_validated_error")
    return Case(
        When(target_outputs__fooled=True, then=F("consensus__is_verified")),
        When(target_outputs__fooled=False, then=Value(False)),
        default=F("consensus__is_validated_error"),
    )


def _with_answers(examples: Any, config: TaskConfig, by: str | None) -> Any:
    """Annotate examples with the target's answer in the field that votes are about.

    This is the first target's answer, or by target each one's.
    """
    field = find_label_field(config)
    if field is None:
        return examples.annotate(said=Value(None, CharField()))
    if by == "target":
        return examples.annotate(said=KeyTextTransform(field, "target_outputs__output"))
    # The first answer only, so that each example stays one row.
    first = FilteredRelation("target_outputs", condition=Q(target_outputs__position=0))
    return examples.annotate(first=first, said=KeyTextTransform(field, "first__output"))


def _count_cells(counted_rounds: Counted, examples: Examples, by: str | None) -> None:
    """Add a count for each combination of `Cell` values to its part."""
    column_names = ("author", "result", "judged", "state", "label", "verdict", "verified", "wrong")
    names = (*column_names, "by_program", "in_round", "value")
    consensus = {name: F(f"consensus__{name}") for name in ("state", "label", "verdict")}
    columns = ", ".join(names)
    rows = _rows(
        f"SELECT {columns}, COUNT(*) FROM ({{examples}}) x GROUP BY {columns}",  # noqa: S608
        examples.annotate(
            **consensus,
            judged=is_counted("judged"),
            verified=F("consensus__is_verified"),
            wrong=_validated_error(by),
        ).values_list(*names),
    )
    for author, result, judged, state, label, verdict, is_verified, is_wrong, *whose, times in rows:
        by_program, round, value = whose
        if by_program:
            counted_rounds.part(round, value).program_examples += times
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
        counted_rounds.part(round, value).cells[cell] += times


def _count_votes(counted_rounds: Counted, examples: Examples) -> None:
    rows = _rows(
        "SELECT x.in_round, x.value, v.validator_id, v.label, v.verdict, v.by_program, COUNT(*) "
        "FROM {votes} v JOIN ({examples}) x ON x.id = v.example_id "
        "GROUP BY v.validator_id, v.label, v.verdict, v.by_program, x.in_round, x.value",
        examples.values_list("id", "in_round", "value"),
    )
    for round, value, validator, label, verdict, by_program, times in rows:
        if by_program:
            counted_rounds.part(round, value).program_votes += times
        else:
            counted_rounds.part(round, value).votes_by[validator, (label, verdict)] += times


def _count_patterns(
    counted_rounds: Counted, rounds: Sequence[Round], examples: Examples, about: bool
) -> None:
    """Count each author's examples by their numbers of votes and the target's answer."""
    columns = ", ".join(f"c{n}" for n in range(len(counted_rounds.choices)))
    sums = ", ".join(
        f"SUM(CASE WHEN v.label = %s AND v.verdict = %s THEN 1 ELSE 0 END) AS c{n}"
        for n in range(len(counted_rounds.choices))
    )
    names = ("author", "result", "said", "in_round", "value")
    column_list = ", ".join(names)
    of_rounds = Example.objects.filter(round__in=rounds).order_by().values("id")
    examples_sql, ids = of_rounds.query.sql_with_params()
    # Votes are added up before the other columns join, which are longer to group by. The groups
    # begin with the columns that differ most, which compares fewer of them.
    rows = _rows(
        f"SELECT {column_list}, {columns}, COUNT(*) FROM (SELECT v.example_id, {sums} "  # noqa: S608
        f"FROM {{votes}} v WHERE NOT v.by_program AND v.example_id IN ({examples_sql}) "
        "GROUP BY v.example_id) one JOIN ({examples}) x ON x.id = one.example_id "
        f"GROUP BY author, {columns}, result, said, in_round, value",
        examples.values_list("id", *names),
        list(chain.from_iterable(counted_rounds.choices)) + list(ids),
    )
    compared_patterns: dict[tuple[Any, ...], Compared] = {}
    for author, result, answer, round, value, *votes, times in rows:
        group, pattern = counted_rounds.part(round, value), tuple(votes)
        group.patterns[pattern] += times
        group.unanimous[author, max(pattern) == sum(pattern)] += times
        case = (result, answer, pattern)
        # Alike examples of different authors are compared once.
        if case not in compared_patterns:
            compared_patterns[case] = compare(
                pattern, target_right(counted_rounds.choices, result, answer, about)
            )
        group.compared[author, compared_patterns[case]] += times


def target_right(
    choices: Sequence[Choice], result: str, answer: str | None, about_model: bool
) -> list[bool | None]:
    """Return for each choice whether the target is right if that choice is correct.

    None if unknown. A label is the target's answer or not; “correct” is the author's label, which a
    target that was fooled did not give. Other verdicts do not tell which label is right.
    about_model: they are about the target's own answer.
    """
    is_fooled = FOOLED_BY_OUTCOME.get(result)
    by_verdict: dict[str, bool | None] = {}
    if about_model and result in ASKED:
        by_verdict = {Verdict.CORRECT: True, Verdict.INCORRECT: False}
    elif is_fooled is not None:
        by_verdict = {Verdict.CORRECT: not is_fooled}
    is_right: list[bool | None] = []
    for label, verdict in choices:
        if not label:
            is_right.append(by_verdict.get(verdict))
        elif answer is None:  # a label says nothing of a target whose answer is unknown
            is_right.append(None)
        else:
            is_right.append(answer == label)
    return is_right


def _count_free_patterns(counted_rounds: Counted, examples: Examples) -> None:
    """Count the patterns by numbers of equal answers, without the answers themselves."""
    # By the example, as `groupby` joins only neighbours.
    rows = _rows(
        "SELECT x.in_round, x.value, x.author, x.id, COUNT(*) FROM {votes} v "
        "JOIN ({examples}) x ON x.id = v.example_id WHERE NOT v.by_program "
        "GROUP BY x.in_round, x.value, x.author, x.id, v.label, v.verdict "
        "ORDER BY x.in_round, x.value, x.id",
        examples.values_list("id", "in_round", "value", "author"),
    )
    for (round, value, author, _), group in groupby(rows, itemgetter(0, 1, 2, 3)):
        # Which answers they were does not matter, only how many were equal.
        pattern = tuple(sorted((times for *_, times in group), reverse=True))
        counts = counted_rounds.part(round, value)
        counts.patterns[pattern] += 1
        counts.unanimous[author, len(pattern) == 1] += 1


def _rows(
    sql: str, examples: Examples, first_parameters: Sequence[Any] = ()
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query over votes and some columns of examples.

    first_parameters: their values.
    Only table and column names are put into the SQL text; values are parameters.
    """
    inner, values = examples.query.sql_with_params()
    sql = sql.format(examples=inner, votes=Validation._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(sql, [*first_parameters, *values])
        # In parts, so that the rows are never in memory all at once.
        while some := cursor.fetchmany(2000):
            yield from some
