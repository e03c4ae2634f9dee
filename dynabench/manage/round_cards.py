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
from tasks.selectors import PLANNED_STATES, count_still_writing, find_grace_end
from validation.judging.queue import round_numbers, waiting_examples
from validation.judging.short_of_judges import short_of_judges
from validation.models import Consensus

State = Round.State


@dataclass(frozen=True)
class RoundCard:
    """A round with its numbers."""

    round: Round
    numbers: Mapping[str, int]
    waiting: int
    contexts: int
    budget: Sequence[BudgetLine]
    writing: int
    """People who may still finish what they were writing when it closed."""

    @property
    def steps(self) -> list[Step]:
        """Return the possible next steps of the round. Releasing it has a page of its own."""
        return list(list_next_steps(self.round).values())

    @property
    def is_planned(self) -> bool:
        """Return whether the round has not been opened yet."""
        return self.round.state in PLANNED_STATES

    @property
    def takes_other_targets(self) -> bool:
        """Return whether a broken target may be replaced.

        It may if the round was opened, has targets and has no example.
        """
        # Before it opens its plan can be changed, targets too.
        fixed = self.round.opened_at is not None and self.round.state != State.RELEASED
        return fixed and self._is_empty and bool(self.round.round_targets.all())

    @property
    def takes_contexts(self) -> bool:
        """Return whether people may still write about newly imported contexts."""
        is_over = self.round.state in (State.CLOSED, State.RELEASED)
        return not (is_over or self.round.task.config.judges_rows)

    @property
    def can_go(self) -> bool:
        """Return whether an owner may delete the round.

        It must be without examples and neither open, paused nor released.
        """
        live = self.round.state in (State.OPEN, State.PAUSED)
        return self._is_empty and not live and self.round.state != State.RELEASED

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
    numbers, votes = round_numbers(*rounds), _count_votes(rounds)
    waiting_counts = waiting_examples(rounds)
    usable = Context.objects.filter(round__in=rounds, is_retired=False).order_by()
    contexts = dict(usable.values_list("round").annotate(Count("pk")))
    cards = []
    for round in rounds:
        used_budget = _build_used_budget(numbers[round.pk], votes.get(round.pk, 0))
        card = RoundCard(
            round=round,
            numbers=numbers[round.pk],
            waiting=waiting_counts[round.pk],
            contexts=contexts.get(round.pk, 0),
            budget=list_limits(round.budget, used_budget),
            writing=count_still_writing(round),
        )
        cards.append(card)
    return cards


def _build_used_budget(numbers: Mapping[str, int], votes: int) -> UsedBudget:
    return UsedBudget(numbers["collected"], numbers["validated_errors"], votes)


def _count_votes(rounds: Sequence[Round]) -> dict[int, int]:
    rows = Consensus.objects.filter(round__in=rounds).order_by()
    return dict(rows.values_list("round").annotate(Sum("votes")))


def describe_closing(round: Round) -> str:
    """Return the consequences of closing the round now, as text."""
    now = timezone.now()
    # Whoever is writing when a round closes may finish within this time.
    until = find_grace_end(round, now)
    waiting_count = waiting_examples([round])[round.pk]
    writing_note = _("Nobody is writing now. The round closes at once and can be released.")
    if until:
        people = find_writers(round, now).count()
        writing_note = ngettext(
            "%(number)d person is writing and may finish within %(minutes)d minutes. You can "
            "release the round after that, or as soon as they have finished.",
            "%(number)d people are writing and may finish within %(minutes)d minutes. You can "
            "release the round after that, or as soon as they have finished.",
            people,
        ) % {"number": people, "minutes": ceil((until - now).total_seconds() / 60)}
    judging_note = _("No item waits to be judged.")
    if waiting_count:
        judging_note = ngettext(
            "Judging continues until the waiting item is decided.",
            "Judging continues until all %(number)d waiting items are decided.",
            waiting_count,
        ) % {"number": waiting_count}
    shortage = short_of_judges(round)
    if shortage.examples:
        judging_note += " " + ngettext(
            "%(number)d of them needs a vote that none of your judges can give: add a judge.",
            "%(number)d of them need votes that none of your judges can give: add judges.",
            shortage.examples,
        ) % {"number": shortage.examples}
    return f"{writing_note} {judging_note}"
