"""The board of a task's adversaries, beside people in the same rounds."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Count, Sum
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.models import Example, TargetOutput
from annotation.rules.near_duplicates import get_written_text
from core.text.words import split_words
from dynabench.adversaries.models import Adversary, AdversaryRun
from tasks.models import Task
from validation.decisions.counted import (
    JUDGED_EXAMPLE_STATES,
    STANDING_CONDITIONS,
    build_measure_condition,
)
from validation.models import Consensus
from validation.rates.rates import (
    Rate,
    Undefined,
    compute_share_by_author,
    compute_wilson_interval,
)

MAX_COMPARED_TEXTS = 500
"""The maximum number of catches that are compared for novelty, the latest ones."""


class PerCatch(NamedTuple):
    """A cost per catch with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class BoardRow:
    """What an adversary, or all people together, achieved.

    calls: of models. fooled: examples after which the model counted as wrong. waiting, catches,
    refuted: what people have decided about these. validity: the share of catches among the decided
    ones. calls_per_catch, cost_per_catch: None without catches or without prices. novelty: see
    `compute_novelty`; None with fewer than two catches.
    """

    adversary: Adversary | None
    name: str | Promise
    calls: int
    examples: int
    fooled: int
    waiting: int
    catches: int
    refuted: int
    validity: Rate | Undefined
    calls_per_catch: PerCatch | None
    cost_per_catch: PerCatch | None
    novelty: float | None


class FooledExample(NamedTuple):
    """An example that fooled the model. is_catch: None until people have decided."""

    author: int | None
    is_catch: bool | None
    text: str


def build_board(task: Task) -> list[BoardRow]:
    """Return a row for each adversary that has run, the most catches first, and one for people.

    Five queries. People are compared in the rounds in which adversaries ran.
    """
    adversaries = list(task.adversaries.all())
    runs = AdversaryRun.objects.filter(adversary__task=task)
    uses = {
        row["adversary"]: row
        for row in runs.values("adversary")
        .order_by()
        .annotate(call_sum=Sum("calls"), cost_sum=Sum("cost"))
    }
    round_ids = set(runs.order_by().values_list("round", flat=True))
    examples = Example.objects.filter(round__in=round_ids, **STANDING_CONDITIONS)
    by_program = {adversary.annotator_id for adversary in adversaries}
    fooled_examples = _list_fooled(examples, task)
    counts: Counter[int | None] = Counter()
    for author, is_program, number in (
        examples.order_by().values_list("annotator", "by_program").annotate(Count("pk"))
    ):
        counts[author if is_program else None] += number
    rows = []
    for adversary in adversaries:
        if adversary.pk not in uses:
            continue
        own_examples = [row for row in fooled_examples if row.author == adversary.annotator_id]
        rows.append(
            _build_row(
                adversary,
                adversary.name,
                calls=uses[adversary.pk]["call_sum"],
                cost=uses[adversary.pk]["cost_sum"],
                example_count=counts[adversary.annotator_id],
                fooled_examples=own_examples,
            )
        )
    rows.sort(key=lambda row: (-row.catches, row.calls))
    people_outputs = TargetOutput.objects.filter(example__in=examples.filter(by_program=False))
    people_examples = [row for row in fooled_examples if row.author not in by_program]
    people = _build_row(
        None,
        _("People"),
        calls=people_outputs.count(),
        cost=0,
        example_count=counts[None],
        fooled_examples=people_examples,
    )
    return rows + [people] if rows else []


def _list_fooled(examples: "Collection[Example]", task: Task) -> list[FooledExample]:
    """Return the fooling examples of people and of the site's adversaries, oldest first."""
    catch = build_measure_condition("catches")
    fooled = examples.filter(build_measure_condition("fooled") | catch).order_by("pk")  # type: ignore[attr-defined]
    states = dict(Consensus.objects.filter(example__in=fooled).values_list("example", "state"))
    catches = set(fooled.filter(catch).values_list("pk", flat=True))
    rows = []
    own_programs = set(task.adversaries.values_list("annotator", flat=True))
    for pk, author, is_program, inputs in fooled.values_list(
        "pk", "annotator", "by_program", "inputs"
    ):
        # Programs that people run with a token are neither people nor entries of the task.
        if is_program and author not in own_programs:
            continue
        is_catch = pk in catches if states.get(pk) in JUDGED_EXAMPLE_STATES else None
        rows.append(FooledExample(author, is_catch, get_written_text(task.config, inputs)))
    return rows


def _build_row(
    adversary: Adversary | None,
    name: str | Promise,
    *,
    calls: int,
    cost: float,
    example_count: int,
    fooled_examples: Sequence[FooledExample],
) -> BoardRow:
    decided_examples = [row for row in fooled_examples if row.is_catch is not None]
    catch_texts = [row.text for row in decided_examples if row.is_catch]
    # An adversary's examples are independent: each comes from another sentence or template.
    clusters: Iterable[tuple[tuple[Hashable | None, bool], int]] = (
        ((None if adversary else row.author, bool(row.is_catch)), 1) for row in decided_examples
    )
    calls_per_catch = compute_per_catch(calls, len(catch_texts))
    cost_per_catch = None
    if calls_per_catch and cost:
        cost_per_catch = PerCatch(*(number * cost / calls for number in calls_per_catch))
    return BoardRow(
        adversary=adversary,
        name=name,
        calls=calls,
        examples=example_count,
        fooled=len(fooled_examples),
        waiting=len(fooled_examples) - len(decided_examples),
        catches=len(catch_texts),
        refuted=len(decided_examples) - len(catch_texts),
        validity=compute_share_by_author(clusters),
        calls_per_catch=calls_per_catch,
        cost_per_catch=cost_per_catch,
        novelty=compute_novelty(catch_texts),
    )


def compute_per_catch(calls: int, catches: int) -> PerCatch | None:
    """Return the calls per catch, with the inverse of Wilson's interval of the share.

    None without catches. An adversary may need several calls for one catch, and people one.
    """
    if not catches or calls < catches:
        return None
    low, high = compute_wilson_interval(catches, calls)
    return PerCatch(calls / catches, 1 / high, 1 / low)


def compute_novelty(texts: Sequence[str]) -> float | None:
    """Return how different the texts are from one another (0-1), None for fewer than two.

    For each text: the share of words that it does not have in common with the most similar other
    one (1 minus Jaccard's index of their words). The mean of these shares is returned.

    >>> compute_novelty(["a b", "a c"])
    0.6666666666666667
    """
    word_sets = [frozenset(split_words(text.lower())) for text in texts[-MAX_COMPARED_TEXTS:]]
    if len(word_sets) < 2:
        return None
    novelties = []
    for position, words in enumerate(word_sets):
        likeness = 0.0
        for other_position, other_words in enumerate(word_sets):
            if other_position != position and words | other_words:
                likeness = max(likeness, len(words & other_words) / len(words | other_words))
        novelties.append(1 - likeness)
    return sum(novelties) / len(novelties)
