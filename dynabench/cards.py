"""Cards of tasks for lists: the round, its numbers, an example, and examples waiting for judges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from annotation.models import Example
from annotation.rules.near_duplicates import get_written_text
from core.accounts.models import User
from core.accounts.services import get_annotator
from core.data.adaptive_cache import CachedResult
from evaluation.dataset_releases.reading import find_released_failures
from evaluation.dataset_releases.undo_services import note_shown_examples
from leaderboard.arena.board import ArenaSize, count_sizes
from leaderboard.board.previews import BoardPreview
from tasks.budgets import BudgetLine, UsedBudget, list_public_limits
from tasks.models import Round, Task
from tasks.selectors import find_opened_rounds
from validation.judging.queue import (
    count_waiting_roughly,
    find_tasks_with_work,
    find_tasks_with_work_roughly,
)
from validation.statistics.cache import get_headline_numbers
from validation.statistics.report import Number


@dataclass(frozen=True)
class Quote:
    """A released example with its author's answer.

    model_answer: the answer of the first model that it fooled; "" if there is none.
    """

    task: Task
    text: str
    answer: str
    model_answer: str


@dataclass(frozen=True)
class TaskCard:
    """A task in a list, with its latest round.

    numbers, progress: missing until a worker has counted the round. waiting: the number of examples
    to judge. top: the first models of the leaderboard. size: the numbers of comparisons and models
    of an arena; None for other tasks.
    """

    task: Task
    round: Round | None = None
    numbers: Mapping[str, Number] | None = None
    progress: Sequence[BudgetLine] = field(default_factory=list)
    waiting: int = 0
    top: BoardPreview | None = None
    size: ArenaSize | None = None

    @property
    def is_open(self) -> bool:
        """Return whether people can write examples now."""
        return bool(self.round and self.round.state == Round.State.OPEN)

    @property
    def can_try(self) -> bool:
        """Return whether visitors without an account may try the task out."""
        return bool(self.is_open and self.task.allow_try_out and self.task.config.practice_contexts)


def build_cards(tasks: Sequence[Task]) -> list[TaskCard]:
    """Return a card for each task: open tasks first, and among both, sensitive tasks last."""
    latest_rounds = {round.task_id: round for round in find_opened_rounds(tasks)}
    rounds = list(latest_rounds.values())
    numbers_by_round = get_headline_numbers(rounds)
    waiting_counts = count_waiting_roughly(rounds)
    sizes = count_sizes(tasks)
    cards = []
    for task in tasks:
        card = TaskCard(task, size=sizes.get(task.pk))
        round = latest_rounds.get(task.pk)
        if round:
            card = replace(card, round=round, waiting=waiting_counts[round.pk])
            cached_numbers = numbers_by_round.get(round.pk)
            if cached_numbers:  # a large round is counted for the first time by a worker
                card = replace(
                    card,
                    numbers=cached_numbers.numbers,
                    progress=measure_progress(round, cached_numbers),
                )
        cards.append(card)
    # Nobody should meet a sensitive text before a mild one, and sorting keeps the order otherwise.
    return sorted(cards, key=lambda card: (not card.is_open, card.task.is_sensitive))


def show_quotes(tasks: Sequence[Task], max_quotes: int) -> list[Quote]:
    """Return a quote from each of the first `max_quotes` tasks that have a released failure.

    Also records that the quotes are shown, which makes their releases final. Hidden and sensitive
    tasks are skipped. At most four queries once the releases are final.
    """
    non_sensitive_tasks = [task for task in tasks if task.is_visible and not task.is_sensitive]
    failures_by_task = {
        example.round.task_id: example for example in find_released_failures(non_sensitive_tasks)
    }
    quoted_examples = [
        (task, failures_by_task[task.pk])
        for task in non_sensitive_tasks
        if task.pk in failures_by_task
    ][:max_quotes]
    # A release that somebody has read is final, which must be stored before the page is shown.
    shown_examples = note_shown_examples([example for _task, example in quoted_examples])
    return [
        _build_quote(task, example)
        for task, example in quoted_examples
        if example in shown_examples
    ]


def remove_unjudgeable_counts(user: User, cards: Sequence[TaskCard]) -> list[TaskCard]:
    """Return the cards, with `waiting` set to 0 for tasks in which the person may not judge.

    As of about the last minute, as the counts are. At most three queries.
    """
    task_ids = [card.task.pk for card in cards if card.waiting]
    # Most visits find nothing that waits, and then need no query.
    if not task_ids:
        return list(cards)
    judgeable_ids = find_tasks_with_work_roughly(get_annotator(user), task_ids)
    limited_cards = []
    for card in cards:
        if card.task.pk not in judgeable_ids:
            card = replace(card, waiting=0)
        limited_cards.append(card)
    return limited_cards


def has_work_to_judge(user: User | None, task: Task, rounds: Sequence[Round]) -> bool:
    """Return whether an example of the task waits for this person's vote; None: for anybody's.

    At most three queries.
    """
    # Most visits find nothing that waits, and then nobody is looked up.
    if not count_waiting_roughly(rounds):
        return False
    return user is None or bool(find_tasks_with_work(get_annotator(user), [task.pk]))


def measure_progress(round: Round, cached_numbers: CachedResult) -> list[BudgetLine]:
    """Return the round's progress towards the limits of its budget, except money.

    Only owners may see money.
    """
    counts = []
    for name in ("collected", "verified_fooled"):
        count = cached_numbers.numbers[name]
        if not isinstance(count, int):  # a round without models has no fooling ones
            count = 0
        counts.append(count)
    tries, fooling = counts
    used_budget = UsedBudget(tries, fooling)
    return list_public_limits(round.budget, used_budget)


def _build_quote(task: Task, example: Example) -> Quote:
    """Return the quote of an example, with the answer of the first model that it fooled."""
    config = task.config
    name = config.answer_field
    model_answer = ""
    fooled = [output for output in example.target_outputs.all() if output.fooled]
    if fooled:
        model_answer = config.display(name, fooled[0].output.get(name))
    answer = config.display(name, example.inputs.get(name))
    return Quote(task, get_written_text(config, example.inputs), answer, model_answer)
