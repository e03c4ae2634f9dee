"""Cards of tasks for lists: round, numbers, one example, how many wait for judges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from annotation.models import Example
from annotation.rules.near_duplicates import get_written_text
from core.accounts.models import User
from core.accounts.services import annotator_of
from core.data.adaptive_cache import Kept, read_or_count
from evaluation.dataset_releases.reading import find_released_failures
from leaderboard.arena.board import Size, count_sizes
from leaderboard.snapshots.previews import BoardPreview
from tasks.budgets import BudgetLine, UsedBudget, list_limits
from tasks.config.schema import TaskConfig
from tasks.models import Round, Task
from tasks.selectors import find_opened_rounds
from validation.decisions.awaited import JUDGED_STATES
from validation.judging.queue import queued_examples, tasks_with_places
from validation.statistics.cache import headline_numbers
from validation.statistics.report import Number


@dataclass(frozen=True)
class Teaser:
    """An example and its label. model_answer: the answer of a model that it fooled, if any."""

    text: str
    answer: str
    model_answer: str = ""


@dataclass(frozen=True)
class TaskCard:
    """A task in a list.

    waiting: number of examples to judge. size: number of models of an arena.
    """

    task: Task
    round: Round | None = None
    numbers: Mapping[str, Number] | None = None
    progress: Sequence[BudgetLine] = field(default_factory=list)
    teaser: Teaser | None = None
    waiting: int = 0
    top: BoardPreview | None = None
    size: Size | None = None

    @property
    def is_open(self) -> bool:
        """Return whether people can write now."""
        return bool(self.round and self.round.state == Round.State.OPEN)

    @property
    def is_judged(self) -> bool:
        """Return whether people can judge now."""
        return bool(self.round and self.round.state in JUDGED_STATES)

    @property
    def can_try(self) -> bool:
        """Return whether visitors without an account may try it out."""
        return bool(self.is_open and self.task.allow_try_out and self.task.config.practice_contexts)


def build_cards(tasks: Sequence[Task]) -> list[TaskCard]:
    """Return a card for each task: open tasks first, sensitive tasks after others."""
    latest_rounds = {round.task_id: round for round in find_opened_rounds(tasks)}
    rounds = list(latest_rounds.values())
    numbers_by_round = headline_numbers(rounds)
    judged_ids = [round.pk for round in rounds if round.state in JUDGED_STATES]
    # Kept for a while under these rounds: the list is asked for more often than people vote.
    waiting_counts = read_or_count(
        f"queued:{'-'.join(map(str, judged_ids))}", lambda: queued_examples(judged_ids)
    )
    teasers = _find_teasers([task for task in tasks if not task.is_sensitive])
    sizes = count_sizes(tasks)
    cards = []
    for task in tasks:
        card = TaskCard(task, teaser=teasers.get(task.pk), size=sizes.get(task.pk))
        round = latest_rounds.get(task.pk)
        if round:
            card = replace(card, round=round, waiting=waiting_counts[round.pk])
            cached_numbers = numbers_by_round.get(round.pk)
            if cached_numbers:  # a large round is counted for the first time by a worker
                card = replace(
                    card,
                    numbers=cached_numbers.numbers,
                    progress=_measure_progress(round, cached_numbers),
                )
        cards.append(card)
    return sorted(cards, key=lambda card: (not card.is_open, card.task.is_sensitive))


def limit_cards(user: User, cards: Sequence[TaskCard]) -> list[TaskCard]:
    """Return the cards without numbers of examples that this person may not judge. One query."""
    task_ids = [card.task.pk for card in cards if card.waiting]
    if not task_ids:
        return list(cards)
    with_places = tasks_with_places(annotator_of(user), task_ids)
    limited_cards = []
    for card in cards:
        if card.task.pk not in with_places:
            card = replace(card, waiting=0)
        limited_cards.append(card)
    return limited_cards


def _measure_progress(round: Round, cached_numbers: Kept) -> list[BudgetLine]:
    """Return the round's progress towards its budget, without money, which only owners may see."""
    counts = []
    for name in ("collected", "verified_fooled"):
        count = cached_numbers.numbers[name]
        if not isinstance(count, int):  # a round without models has no fooling ones
            count = 0
        counts.append(count)
    tries, fooling = counts
    used = UsedBudget(tries, fooling)
    return [line for line in list_limits(round.budget, used) if line.name != "money"]


def _find_teasers(tasks: Sequence[Task]) -> dict[int, Teaser]:
    """Return a teaser by task: a released failure, or else the first good sample example."""
    config_of = {task.pk: task.config for task in tasks}
    teasers = {}
    for pk, config in config_of.items():
        shipped = _build_sample_teaser(config)
        if shipped:
            teasers[pk] = shipped
    for example in find_released_failures([task for task in tasks if task.is_visible]):
        task = example.round.task_id
        teasers[task] = _build_failure_teaser(config_of[task], example)
    return teasers


def _build_sample_teaser(config: TaskConfig) -> Teaser | None:
    """Return the teaser of the configuration's first good example, or None."""
    if not config.examples.good:
        return None
    return _build_teaser(config, config.examples.good[0].input)


def _build_failure_teaser(config: TaskConfig, example: Example) -> Teaser:
    """Return the teaser of an example, with the answer of the first model that it fooled."""
    name = config.answer_field
    model_answer = ""
    fooled = [output for output in example.target_outputs.all() if output.fooled]
    if fooled:
        model_answer = config.display(name, fooled[0].output.get(name))
    return _build_teaser(config, example.inputs, model_answer)


def _build_teaser(
    config: TaskConfig, inputs: Mapping[str, object], model_answer: str = ""
) -> Teaser:
    answer = inputs.get(config.answer_field)
    return Teaser(
        get_written_text(config, inputs), config.display(config.answer_field, answer), model_answer
    )
