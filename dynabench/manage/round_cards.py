"""The cards of rounds on the owners' page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from django.db.models import Count, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tasks.budgets import BudgetLine, UsedBudget, list_limits
from tasks.models import Context, Round, Task
from tasks.questions import find_writers
from tasks.rounds.steps import Step, list_next_steps
from tasks.selectors import PLANNED_STATES, count_late_writers, find_grace_end
from validation.judging.queue import count_waiting_examples, read_round_numbers
from validation.judging.short_of_judges import compute_shortage
from validation.models import Consensus

State = Round.State


@dataclass(frozen=True)
class RoundCard:
    """A round with its figures.

    waiting: the number of examples that need votes. contexts: the number of unretired contexts.
    """

    round: Round
    numbers: Mapping[str, int]
    waiting: int
    contexts: int
    budget: Sequence[BudgetLine]
    writing: int
    """The number of people who may still finish what they were writing when the round closed."""

    @property
    def limits(self) -> dict[str, BudgetLine]:
        """Return the lines of the budget by their names."""
        return {line.name: line for line in self.budget}

    @property
    def steps(self) -> list[Step]:
        """Return the possible next steps of the round, except its release.

        The release has a page of its own.
        """
        return list(list_next_steps(self.round).values())

    @property
    def is_planned(self) -> bool:
        """Return whether the round has not been opened yet."""
        return self.round.state in PLANNED_STATES

    @property
    def accepts_other_targets(self) -> bool:
        """Return whether a broken target may be replaced.

        This is so if the round has been opened but not released, and has targets and no examples.
        """
        # Before it opens its plan can be changed, targets too.
        is_fixed = self.round.opened_at is not None and self.round.state != State.RELEASED
        return is_fixed and self._is_empty and bool(self.round.round_targets.all())

    @property
    def accepts_contexts(self) -> bool:
        """Return whether it makes sense to import contexts: people may still write about them."""
        is_over = self.round.state in Round.FINISHED_STATES
        return not (is_over or self.round.task.config.has_rows_to_judge)

    @property
    def can_be_deleted(self) -> bool:
        """Return whether an owner may delete the round.

        It must have no examples, and be neither open, paused nor released.
        """
        is_live = self.round.state in (State.OPEN, State.PAUSED)
        return self._is_empty and not is_live and self.round.state != State.RELEASED

    @property
    def _is_empty(self) -> bool:
        return not self.numbers["collected"] and not self.numbers["by_programs"]


def build_round_cards(task: Task, number: int | None = None) -> list[RoundCard]:
    """Return the cards of a task's rounds, newest first, or only the card of round `number`.

    Eight queries, and one for each round that has just closed.
    """
    rows = task.rounds.prefetch_related("round_targets__target", "parents").order_by("-number")
    if number is not None:
        rows = rows.filter(number=number)
    rounds = list(rows)
    # Each number is read for all rounds at once.
    numbers, vote_counts = read_round_numbers(*rounds), _count_votes(rounds)
    waiting_counts = count_waiting_examples(rounds)
    usable_contexts = Context.objects.filter(round__in=rounds, is_retired=False).order_by()
    context_counts = dict(usable_contexts.values_list("round").annotate(Count("pk")))
    cards = []
    for round in rounds:
        used_budget = _build_used_budget(numbers[round.pk], vote_counts.get(round.pk, 0))
        card = RoundCard(
            round=round,
            numbers=numbers[round.pk],
            waiting=waiting_counts[round.pk],
            contexts=context_counts.get(round.pk, 0),
            budget=list_limits(round.budget, used_budget),
            writing=count_late_writers(round),
        )
        cards.append(card)
    return cards


def _build_used_budget(numbers: Mapping[str, int], votes: int) -> UsedBudget:
    return UsedBudget(numbers["collected"], numbers["validated_errors"], votes)


def _count_votes(rounds: Sequence[Round]) -> dict[int, int]:
    rows = Consensus.objects.filter(round__in=rounds).order_by()
    return dict(rows.values_list("round").annotate(Sum("votes")))


def describe_closing(round: Round) -> str:
    """Return a text that says what happens if the round is closed now."""
    now = timezone.now()
    # Whoever is writing when a round closes may finish within this time.
    grace_end = find_grace_end(round, now)
    waiting_count = count_waiting_examples([round])[round.pk]
    writing_note = _(
        "No one is writing now, so the round closes immediately and you can release it."
    )
    if grace_end:
        writer_count = find_writers(round, now).count()
        writing_note = ngettext(
            "%(number)d person is writing and has up to %(minutes)d minutes to finish. You "
            "can release the round after that, or as soon as they finish.",
            "%(number)d people are writing and have up to %(minutes)d minutes to finish. You "
            "can release the round after that, or as soon as they finish.",
            writer_count,
        ) % {"number": writer_count, "minutes": ceil((grace_end - now).total_seconds() / 60)}
    judging_note = _("All examples are judged.")
    if waiting_count:
        judging_note = ngettext(
            "Judging continues until the waiting example is decided.",
            "Judging continues until all %(number)d waiting examples are decided.",
            waiting_count,
        ) % {"number": waiting_count}
    shortage = compute_shortage(round)
    if shortage.example_count:
        judging_note += " " + ngettext(
            "%(number)d of them needs a vote that none of your judges can give. Add a judge.",
            "%(number)d of them need votes that none of your judges can give. Add judges.",
            shortage.example_count,
        ) % {"number": shortage.example_count}
    return f"{writing_note} {judging_note}"
