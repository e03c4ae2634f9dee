"""Cards of tasks for lists: round, numbers, one example, how many wait for judges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from annotation.models import Example
from annotation.rules.near_duplicates import written_text
from core.accounts.models import User
from core.accounts.services import annotator_of
from core.data.adaptive_cache import Kept, kept
from evaluation.releases.reading import released_failures
from leaderboard.arena.board import Size, sizes_of
from leaderboard.snapshots.previews import Top
from tasks.budgets import Line, Used, lines
from tasks.config.schema import TaskConfig
from tasks.models import Round, Task
from tasks.selectors import seen_rounds
from validation.decisions.awaited import JUDGED_STATES
from validation.judging.queue import queued_examples, tasks_with_places
from validation.statistics.cache import headline_numbers
from validation.statistics.report import Number


@dataclass(frozen=True)
class Teaser:
    """An example and its label. `said`: the answer of a fooled model, if there is one."""

    text: str
    answer: str
    said: str = ""


@dataclass(frozen=True)
class Card:
    """A task in a list. waiting: examples in the queue of the judges; size: of an arena."""

    task: Task
    round: Round | None = None
    numbers: Mapping[str, Number] | None = None
    wanted: Sequence[Line] = field(default_factory=list)
    teaser: Teaser | None = None
    waiting: int = 0
    top: Top | None = None
    size: Size | None = None

    @property
    def is_open(self) -> bool:
        """Return whether people write now."""
        return bool(self.round and self.round.state == Round.State.OPEN)

    @property
    def is_judged(self) -> bool:
        """Return whether people judge now."""
        return bool(self.round and self.round.state in JUDGED_STATES)

    @property
    def can_try(self) -> bool:
        """Return whether strangers may try it out."""
        return bool(self.is_open and self.task.allow_try_out and self.task.config.practice_contexts)


def cards_of(tasks: Sequence[Task]) -> list[Card]:
    """Return a card for each task, open ones first, and sensitive ones after others."""
    latest = {round.task_id: round for round in seen_rounds(tasks)}
    rounds = list(latest.values())
    counted = headline_numbers(rounds)
    judged = [round.pk for round in rounds if round.state in JUDGED_STATES]
    waiting = kept(f"queued:{'-'.join(map(str, judged))}", lambda: queued_examples(judged))
    teasers = _teasers([task for task in tasks if not task.is_sensitive])
    sizes = sizes_of(tasks)
    cards = []
    for task in tasks:
        round = latest.get(task.pk)
        counts = counted.get(round.pk) if round else None
        cards.append(
            Card(
                task,
                round,
                counts.numbers if counts else None,
                _wanted(round, counts) if round and counts else [],
                teasers.get(task.pk),
                waiting[round.pk] if round else 0,
                size=sizes.get(task.pk),
            )
        )
    return sorted(cards, key=lambda card: (not card.is_open, card.task.is_sensitive))


def cards_for(user: User, cards: Sequence[Card]) -> list[Card]:
    """Return the cards, without numbers of examples that this person may not judge. One query."""
    waiting = [card.task.pk for card in cards if card.waiting]
    with_places = tasks_with_places(annotator_of(user), waiting) if waiting else set()
    return [card if card.task.pk in with_places else replace(card, waiting=0) for card in cards]


def _wanted(round: Round, counted: Kept) -> list[Line]:
    """Return the round's progress towards its budget, without money, which only owners see."""
    counts = [counted.numbers[name] for name in ("collected", "verified_fooled")]
    used = Used(*(count if isinstance(count, int) else 0 for count in counts))
    return [line for line in lines(round.budget, used) if line.name != "money"]


def _teasers(tasks: Sequence[Task]) -> dict[int, Teaser]:
    """Return a teaser by task: a released failure, else the configuration's first good example."""
    config_of = {task.pk: task.config for task in tasks}
    teasers = {pk: shipped for pk, config in config_of.items() if (shipped := _shipped(config))}
    for example in released_failures([task for task in tasks if task.is_visible]):
        task = example.round.task_id
        teasers[task] = _failure(config_of[task], example)
    return teasers


def _shipped(config: TaskConfig) -> Teaser | None:
    case = next(iter(config.examples.good), None)
    return _teaser(config, case.input) if case else None


def _failure(config: TaskConfig, example: Example) -> Teaser:
    fooled = next((output for output in example.target_outputs.all() if output.fooled), None)
    name = config.answer_field
    model_answer = config.display(name, fooled.output.get(name)) if fooled else ""
    return _teaser(config, example.inputs, model_answer)


def _teaser(config: TaskConfig, inputs: Mapping[str, object], model_answer: str = "") -> Teaser:
    answer = inputs.get(config.answer_field)
    return Teaser(
        written_text(config, inputs), config.display(config.answer_field, answer), model_answer
    )
