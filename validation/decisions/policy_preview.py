"""The changes that another policy would make in a round, computed in memory and never stored."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from annotation.models import Example
from tasks.models import Round
from validation.consensus.consensus import Policy
from validation.decisions.replay import UNDECIDED, ExampleStatus, replay_policy
from validation.models import Consensus, VoteDraw
from validation.rates.rates import Rate, Undefined, compute_round_rates
from validation.rates.round_counts import Part
from validation.rates.sampled_counts import ONLY_SAMPLE_REASON

MAX_SHOWN_CHANGES = 20
# What a request can replay; for larger rounds, use manage.py task_report.
MAX_PREVIEWED_EXAMPLES = 50_000


@dataclass
class Preview:
    """The changes of a round under a policy.

    transitions: status before and after, with the number of examples. If both are equal, the label
    or verdict changes. first: ids of the first changed examples, with both statuses. before, after:
    the round's rates.
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
        return sum(count for (_, after), count in self.transitions.items() if after == UNDECIDED)


def describe_policy(policy: Policy) -> str:
    """Describe a policy in a phrase that follows “decided by”."""
    limited_sentence = {
        "n-equal": _("%(needed)d matching votes out of at most %(of)d"),
        "at-least": _("at least %(needed)d matching votes out of %(of)d"),
        "strict": _("more than half of %(of)d votes"),
        "plurality": _("the most frequent answer among %(of)d votes"),
        "dawid-skene": _("a Dawid–Skene probability of %(threshold)s or more, from %(of)d votes"),
    }
    unlimited_sentence = {
        "n-equal": _("%(needed)d matching votes"),
        "at-least": _("at least %(needed)d matching votes out of all votes"),
        "strict": _("more than half of all votes"),
        "plurality": _("the most frequent answer among all votes"),
        "dawid-skene": _("a Dawid–Skene probability of %(threshold)s or more, from all votes"),
    }
    values = {"needed": policy.needed, "of": policy.of, "threshold": f"{policy.threshold:g}"}
    return (limited_sentence if policy.of else unlimited_sentence)[policy.rule] % values


def is_too_large(round: Round) -> bool:
    """Return whether the round has too many examples to decide within a request."""
    return Example.objects.filter(round=round).count() > MAX_PREVIEWED_EXAMPLES


def preview_policy(round: Round, policy: Policy) -> Preview:
    """Compute the changes that `derive_round` would make now. Five queries."""
    changes = Preview()
    before, after = Part(), Part()
    stored_rows = _iter_stored_statuses(round)
    row = next(stored_rows, None)
    for example in replay_policy(round, policy):
        # Both streams are sorted by the example's id, so one pass joins them.
        while row and row[0] < example.example_id:
            row = next(stored_rows, None)
        # Without a row, nobody has judged or decided it.
        old_status = row[1] if row and row[0] == example.example_id else ExampleStatus()
        changes.examples += 1
        if not example.by_program:  # the rates are only about people
            example.add_to(before, old_status)
            example.add_to(after, example.status)
        if old_status != example.status:
            changes.transitions[old_status.words, example.status.words] += 1
            if len(changes.first) < MAX_SHOWN_CHANGES:
                changes.first[example.example_id] = (old_status, example.status)
    changes.before, changes.after = (
        compute_round_rates(before.list_author_counts(), before.list_author_weights()),
        compute_round_rates(after.list_author_counts(), after.list_author_weights()),
    )
    # A rate of the sample would look like one of the whole round.
    if VoteDraw.objects.filter(round=round, is_drawn=False).exists():
        unknown = Undefined(ONLY_SAMPLE_REASON)
        changes.before = changes.after = dict.fromkeys(changes.before, unknown)
    return changes


def _iter_stored_statuses(round: Round) -> Iterator[tuple[int, ExampleStatus]]:
    rows = Consensus.objects.filter(round=round, example__retracted_at__isnull=True)
    for example_id, *names in (
        rows.order_by("pk").values_list("pk", *ExampleStatus._fields).iterator()
    ):
        yield example_id, ExampleStatus(*names)
