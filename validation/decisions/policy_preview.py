"""The changes that another policy would make in a round; decided in memory, nothing is stored."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from annotation.models import Example
from tasks.models import Round
from validation.consensus.consensus import Policy
from validation.decisions.replay import UNDECIDED, ExampleStatus, replay
from validation.models import Consensus
from validation.rates.rates import Rate, Undefined, round_rates
from validation.rates.round_counts import Part

SHOWN_CHANGES = 20
# What a request can decide; of larger rounds manage.py task_report tells the same.
MOST_PREVIEWED = 50_000


@dataclass
class Preview:
    """The changes of a round under a policy; `rates` are the `round_rates` before and after.

    transitions: status before and after, with the number of examples. If both are equal, the label
    or verdict changes. first: ids of the first changed examples, with both statuses.
    """

    examples: int = 0
    transitions: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: dict[int, tuple[ExampleStatus, ExampleStatus]] = field(default_factory=dict)
    before: Mapping[str, Rate | Undefined] = field(default_factory=dict)
    after: Mapping[str, Rate | Undefined] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """Return how many examples would change."""
        return self.transitions.total()

    @property
    def reopened(self) -> int:
        """Return the number of closed examples that would open again and need further votes."""
        return sum(n for (_, after), n in self.transitions.items() if after == UNDECIDED)


def in_words(policy: Policy) -> str:
    """Describe a policy in a phrase that follows “decided by”."""
    of_some = {
        "n-equal": _("%(needed)d equal votes of at most %(of)d"),
        "at-least": _("at least %(needed)d equal votes of %(of)d votes"),
        "strict": _("more than half of %(of)d votes"),
        "plurality": _("the most frequent answer of %(of)d votes"),
        "dawid-skene": _("a Dawid–Skene probability of %(threshold)s or more, of %(of)d votes"),
    }
    of_all = {
        "n-equal": _("%(needed)d equal votes"),
        "at-least": _("at least %(needed)d equal votes of all votes cast"),
        "strict": _("more than half of all votes cast"),
        "plurality": _("the most frequent answer of all votes cast"),
        "dawid-skene": _("a Dawid–Skene probability of %(threshold)s or more, of all votes cast"),
    }
    values = {"needed": policy.needed, "of": policy.of, "threshold": f"{policy.threshold:g}"}
    return (of_some if policy.of else of_all)[policy.rule] % values


def is_too_large(round: Round) -> bool:
    """Return whether the round has too many examples to decide within a request."""
    return Example.objects.filter(round=round).count() > MOST_PREVIEWED


def preview(round: Round, policy: Policy) -> Preview:
    """Compute the changes that `derive_round` would make now. Four queries; memory as `replay`."""
    changes = Preview()
    before, after = Part(), Part()
    stored_rows = _iter_stored_statuses(round)
    row = next(stored_rows, None)
    for example in replay(round, policy):
        # Both streams come by the example's id, so one pass joins them.
        while row and row[0] < example.example_id:
            row = next(stored_rows, None)
        # Without a row nobody has judged or decided it.
        old_status = row[1] if row and row[0] == example.example_id else ExampleStatus()
        changes.examples += 1
        if not example.by_program:  # the rates are people's
            before.cells[example.cell(old_status)] += 1
            after.cells[example.cell(example.status)] += 1
        if old_status != example.status:
            changes.transitions[old_status.words, example.status.words] += 1
            if len(changes.first) < SHOWN_CHANGES:
                changes.first[example.example_id] = (old_status, example.status)
    changes.before, changes.after = round_rates(before.authors()), round_rates(after.authors())
    return changes


def _iter_stored_statuses(round: Round) -> Iterator[tuple[int, ExampleStatus]]:
    rows = Consensus.objects.filter(round=round, example__retracted_at__isnull=True)
    for pk, *names in rows.order_by("pk").values_list("pk", *ExampleStatus._fields).iterator():
        yield pk, ExampleStatus(*names)
