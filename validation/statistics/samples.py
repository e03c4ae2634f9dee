"""Reads of the examples of rounds in which people judge a sample, each with its draw."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db.models import Count, F

from annotation.models import Example
from tasks.models import Round
from validation.decisions.counted import build_measure_condition, build_weight_expression
from validation.models import Consensus, Validation, VoteDraw
from validation.rates.rates import ComparedCounts
from validation.rates.round_counts import Choice
from validation.rates.sampled_counts import SampledExample


class SampledRow(NamedTuple):
    """An example of a person with its draw and its consensus.

    chance: None without a draw. value: the value it is grouped by. result, answer: the outcome and
    the answer of the target that is counted. is_queued: whether it is or was in the queue.
    """

    example_id: int
    round_id: int
    value: Any
    author: int | None
    result: str
    answer: str | None
    judge_score: float | None
    chance: float | None
    is_drawn: bool | None
    is_queued: bool
    state: str | None
    is_judged: bool
    is_catch: bool | None
    weight: float | None


def tally_votes(rounds: Sequence[Round]) -> dict[int, Counter[Choice]]:
    """Return the numbers of people's votes for each choice, by example id. One query."""
    tallies: dict[int, Counter[Choice]] = {}
    votes = Validation.objects.filter(example__round__in=rounds, by_program=False).order_by()
    rows = votes.values_list("example", "label", "verdict").annotate(Count("pk"))
    for example_id, label, verdict, count in rows.iterator():
        tallies.setdefault(example_id, Counter())[label, verdict] = count
    return tallies


def iterate_sampled_rows(examples: Any, catch_expression: Any) -> Iterator[SampledRow]:
    """Yield these examples with their draws. One query.

    examples: annotated with `in_round`, `value`, `author`, `result` and `said`, as in `counts`.
    """
    rows = examples.annotate(
        queued=F("queue_item__pk"),
        state=F("consensus__state"),
        judged=build_measure_condition("judged"),
        wrong=catch_expression,
        context_weight=build_weight_expression(),
    ).values_list(
        *("id", "in_round", "value", "author", "result", "said"),
        *("vote_draw__judge_score", "vote_draw__chance", "vote_draw__is_drawn"),
        *("queued", "state", "judged", "wrong", "context_weight"),
    )
    for row in rows.iterator(chunk_size=2000):
        sampled_row = SampledRow(*row)
        yield sampled_row._replace(is_queued=sampled_row.is_queued is not None)


class Asked(NamedTuple):
    """Whether people are asked about an example; the fields are those of `SampledExample`."""

    chance: float
    is_asked: bool
    can_be_catch: bool
    is_to_judge: bool


def find_whether_asked(
    *,
    result: str,
    chance: float | None,
    is_drawn: bool | None,
    is_queued: bool,
    is_judged: bool | None,
) -> Asked:
    """Return whether people are asked about an example, and with which chance (0-1].

    result: its outcome. chance, is_drawn: of its draw, or None without one. is_queued: whether it
    is or was in the queue. is_judged: whether it has votes or a decision.
    """
    # Outcomes that nobody knows yet may still turn out as catches.
    can_be_catch = result != Example.Outcome.NOT_FOOLED
    # What waits for its draw counts as asked and undecided, as in a round without a judge model.
    is_to_judge = chance is not None or is_queued or bool(is_judged) or can_be_catch
    if chance is None:
        return Asked(1.0, is_to_judge, can_be_catch, is_to_judge)
    # Even with votes or an owner's decision, what wasn't drawn is no random sample.
    return Asked(chance, bool(is_drawn), can_be_catch, is_to_judge)


def count_left_out(round: Round) -> int:
    """Return about how many examples of the round people weren't asked. One query."""
    return VoteDraw.objects.filter(
        round=round, is_drawn=False, example__retracted_at__isnull=True, example__by_program=False
    ).count()


def build_sampled_example(
    row: SampledRow, pattern: Sequence[int], compared: ComparedCounts
) -> SampledExample:
    """Return an example for the estimates.

    pattern: the number of votes for each choice. compared: these votes, compared with each other.
    """
    asked = find_whether_asked(
        result=row.result,
        chance=row.chance,
        is_drawn=row.is_drawn,
        is_queued=row.is_queued,
        is_judged=row.is_judged,
    )
    return SampledExample(
        author=row.author,
        judge_score=row.judge_score,
        **asked._asdict(),
        weight=1.0 if row.weight is None else row.weight,
        catches=bool(row.is_catch),
        decided=row.state == Consensus.State.DECIDED,
        judged=bool(row.is_judged),
        unanimous=bool(sum(pattern)) and max(pattern) == sum(pattern),
        votes=compared.votes,
        human=compared.human,
        model=compared.model,
    )
