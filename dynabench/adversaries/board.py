"""The board of a task's adversaries, beside people in the same rounds."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet, Sum
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.models import Example, Suggestion, TargetOutput
from annotation.rules.near_duplicates import get_written_text
from dynabench.adversaries.board_measures import (
    Measured,
    collect_content_words,
    compute_coverage,
    compute_novelty,
    compute_pass_chance,
    compute_per_catch,
)
from dynabench.adversaries.kinds.base import list_kinds
from dynabench.adversaries.models import Adversary, AdversaryRun, AdversaryTry
from tasks.arms import DRAFTS, HELPED, PEOPLE
from tasks.config.schema import TaskConfig
from tasks.models import Task
from validation.decisions.counted import (
    JUDGED_EXAMPLE_STATES,
    STANDING_CONDITIONS,
    build_measure_condition,
)
from validation.models import Consensus
from validation.rates.rates import Rate, Undefined, compute_share_by_author


@dataclass(frozen=True)
class BoardRow:
    """What an adversary, or all people of an arm together, achieved.

    code: people, helped, drafts, or the adversary's id. calls: of models. tries: texts that people
    could get; of people their examples. fooled: examples after which the model counted as wrong.
    waiting, catches, refuted: what people have decided about these. validity: the share of catches
    among the decided ones. The other numbers are those of `board_measures`; None without enough
    data.
    """

    adversary: Adversary | None
    code: str
    name: str | Promise
    calls: int
    tries: int
    examples: int
    fooled: int
    waiting: int
    catches: int
    refuted: int
    validity: Rate | Undefined
    calls_per_catch: Measured | None
    cost_per_catch: Measured | None
    pass_chance: Measured | None
    novelty: Measured | None
    coverage: float | None


class FooledExample(NamedTuple):
    """An example that fooled the model.

    code: of its board row. is_catch: None until people have decided.
    """

    code: str
    author: int
    is_catch: bool | None
    text: str


class RowCounts(NamedTuple):
    """What a board row has used and written: see `BoardRow`."""

    calls: int
    tries: int
    examples: int
    cost: float = 0


HELP_COLUMNS = ("support__arm", "support__suggestion")
"""What decides to which row of people an example belongs."""


def build_board(task: Task) -> list[BoardRow]:
    """Return a row for each adversary that has run, the most catches first, and rows for people.

    People have a row for each kind of help. In a mixed round the arm decides that was drawn for a
    text, else whether its author used a suggestion. At most nine queries. They are compared in the
    rounds in which adversaries ran.
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
    codes = {adversary.annotator_id: str(adversary.pk) for adversary in adversaries}
    fooled_examples = _list_fooled(examples, task, codes)
    counts: Counter[str] = Counter()
    for author, is_program, arm, suggestion, number in (
        examples.order_by()
        .values_list("annotator", "by_program", *HELP_COLUMNS)
        .annotate(Count("pk"))
    ):
        counts[find_code(author, is_program, arm, suggestion, codes)] += number
    # A program may first measure a text and then offer it, so all of its tries count. Of a
    # conversation only the first turn counts, because people's conversations are one try, too.
    program_kinds = [kind.name for kind in list_kinds() if kind.is_program or kind.is_container]
    could_be_offered = Q(is_offered=True) | Q(adversary__kind__in=program_kinds)
    tries = dict(
        AdversaryTry.objects.filter(
            could_be_offered, adversary__task=task, is_fooled__isnull=False, previous=None
        )
        .order_by()
        .values_list("adversary")
        .annotate(Count("pk"))
    )
    # Words of all catches, whoever found them: what the rows can cover.
    all_words = collect_content_words([row.text for row in fooled_examples if row.is_catch])
    rows = []
    for adversary in adversaries:
        if adversary.pk not in uses:
            continue
        code, use = str(adversary.pk), uses[adversary.pk]
        row_counts = RowCounts(
            use["call_sum"], tries.get(adversary.pk, 0), counts[code], use["cost_sum"]
        )
        own_examples = [row for row in fooled_examples if row.code == code]
        rows.append(_build_row(adversary, code, row_counts, own_examples, all_words))
    rows.sort(key=lambda row: (-row.catches, row.calls))
    if not rows:
        return []
    return rows + _build_people_rows(task.config, examples, counts, fooled_examples, all_words)


def _build_people_rows(
    config: TaskConfig,
    examples: QuerySet[Example],
    counts: Mapping[str, int],
    fooled_examples: Sequence[FooledExample],
    all_words: frozenset[str],
) -> list[BoardRow]:
    """Return the row of people, and one for each kind of help that people had."""
    rows = []
    # A suggestion that was ignored helped nobody.
    used = Q(support__suggestion__in=Suggestion.USED_ACTIONS)
    in_no_arm = Q(support__arm__isnull=True)
    conditions = {
        # Without the key a condition is unknown to the database, and so is its opposite.
        PEOPLE: Q(support__arm=PEOPLE) | in_no_arm & (~used | Q(support__suggestion__isnull=True)),
        HELPED: Q(support__arm=HELPED) | in_no_arm & used,
        DRAFTS: Q(support__arm=DRAFTS),
    }
    for code, condition in conditions.items():
        if code != PEOPLE and not counts[code]:
            continue
        outputs = TargetOutput.objects.filter(
            example__in=examples.filter(condition, by_program=False)
        )
        row_counts = RowCounts(_count_calls(config, outputs), counts[code], counts[code])
        own_examples = [row for row in fooled_examples if row.code == code]
        rows.append(_build_row(None, code, row_counts, own_examples, all_words))
    return rows


def _count_calls(config: TaskConfig, outputs: QuerySet[TargetOutput]) -> int:
    """Return how often models were asked for these answers: in a conversation, at each turn."""
    if config.talk is None:
        return outputs.count()
    talks = outputs.values_list(f"example__inputs__{config.talk.name}", flat=True)
    return sum(turn["role"] == "user" for turns in talks for turn in turns or ())


def find_code(
    author: int,
    is_program: bool,
    arm: str | None,
    suggestion: str | None,
    codes: Mapping[int, str],
) -> str:
    """Return the code of the row to which an example belongs; "" for none."""
    if is_program:
        # Programs that people run with a token are neither people nor entries of the task.
        return codes.get(author, "")
    # As it was drawn, also if the person used no help: only so the arms are comparable.
    if arm:
        return arm
    return HELPED if suggestion in Suggestion.USED_ACTIONS else PEOPLE


def _list_fooled(
    examples: QuerySet[Example], task: Task, codes: Mapping[int, str]
) -> list[FooledExample]:
    """Return the fooling examples of people and of the site's adversaries, oldest first."""
    catch = build_measure_condition("catches")
    fooled = examples.filter(build_measure_condition("fooled") | catch).order_by("pk")
    states = dict(Consensus.objects.filter(example__in=fooled).values_list("example", "state"))
    catches = set(fooled.filter(catch).values_list("pk", flat=True))
    rows = []
    for pk, author, is_program, arm, suggestion, inputs in fooled.values_list(
        "pk", "annotator", "by_program", *HELP_COLUMNS, "inputs"
    ):
        code = find_code(author, is_program, arm, suggestion, codes)
        if code:
            is_catch = pk in catches if states.get(pk) in JUDGED_EXAMPLE_STATES else None
            text = get_written_text(task.config, inputs)
            rows.append(FooledExample(code, author, is_catch, text))
    return rows


def _build_row(
    adversary: Adversary | None,
    code: str,
    counts: RowCounts,
    fooled_examples: Sequence[FooledExample],
    all_words: frozenset[str],
) -> BoardRow:
    decided_examples = [row for row in fooled_examples if row.is_catch is not None]
    catch_texts = [row.text for row in decided_examples if row.is_catch]
    # An adversary's examples are independent: each comes from another sentence or template.
    clusters: Iterable[tuple[tuple[Hashable | None, bool], int]] = (
        ((None if adversary else row.author, bool(row.is_catch)), 1) for row in decided_examples
    )
    calls_per_catch = compute_per_catch(counts.calls, len(catch_texts))
    cost_per_catch = None
    if calls_per_catch and counts.cost:
        cost_per_catch = Measured(
            *(number * counts.cost / counts.calls for number in calls_per_catch)
        )
    return BoardRow(
        adversary=adversary,
        code=code,
        name=adversary.name if adversary else PEOPLE_NAMES[code],
        calls=counts.calls,
        tries=counts.tries,
        examples=counts.examples,
        fooled=len(fooled_examples),
        waiting=len(fooled_examples) - len(decided_examples),
        catches=len(catch_texts),
        refuted=len(decided_examples) - len(catch_texts),
        validity=compute_share_by_author(clusters),
        calls_per_catch=calls_per_catch,
        cost_per_catch=cost_per_catch,
        pass_chance=compute_pass_chance(counts.tries, min(len(catch_texts), counts.tries)),
        novelty=compute_novelty(catch_texts),
        coverage=compute_coverage(catch_texts, all_words),
    )


PEOPLE_NAMES: Mapping[str, Promise] = {
    PEOPLE: _("People"),
    HELPED: _("People with suggestions"),
    DRAFTS: _("People who finish drafts"),
}
