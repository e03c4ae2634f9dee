"""What another policy would change in a round; decided in memory, nothing is stored."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Example
from tasks.models import Round
from validation.decisions.replay import Case, decided
from validation.models import Consensus, Judging
from validation.rules.consensus import Policy
from validation.rules.rates import Rate, Undefined, round_rates
from validation.statistics.counts import Cell, Part

SHOWN_CHANGES = 20
MOST_PREVIEWED = 50_000
UNDECIDED = gettext_noop("undecided")


class Standing(NamedTuple):
    """What is, or would be, said of an example."""

    state: str = Consensus.State.UNDECIDED
    label: str = ""
    verdict: str = ""
    is_verified: bool = False
    is_validated_error: bool = False

    @property
    def words(self) -> str:
        """Without the label."""
        if self.state == Consensus.State.NO_CONSENSUS:
            return gettext_noop("no consensus")
        if self.state != Consensus.State.DECIDED:
            return UNDECIDED
        if self.is_verified:
            return gettext_noop("verified")
        return gettext_noop("decided, not verified")


@dataclass
class Preview:
    """How a round would change; `rates` are those of `round_rates`, as stored and by the policy.

    transitions: words before and after, with how many examples; the same words twice: they are
    decided with another label or verdict. first: ids of the first changed examples, with both.
    """

    examples: int = 0
    transitions: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: dict[int, tuple[Standing, Standing]] = field(default_factory=dict)
    before: Mapping[str, Rate | Undefined] = field(default_factory=dict)
    after: Mapping[str, Rate | Undefined] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """How many examples would change."""
        return self.transitions.total()

    @property
    def reopened(self) -> int:
        """How many that are closed would be open again, so that people are asked once more."""
        return sum(n for (_, after), n in self.transitions.items() if after == UNDECIDED)


def in_force(round: Round) -> Policy:
    """What decides in the round now: what was settled, else what the task's configuration says."""
    judging = Judging.objects.filter(round=round).first()
    if judging is None:
        return Policy.from_votes(round.task.config.validation.votes)
    return Policy(**judging.policy)


def in_words(policy: Policy) -> str:
    """A policy as a phrase that follows “decided by”."""
    of_some = {
        "n-equal": _("%(needed)d equal votes of at most %(of)d"),
        "at-least": _("at least %(needed)d equal votes of %(of)d votes"),
        "strict": _("more than half of %(of)d votes"),
        "plurality": _("the most frequent answer of %(of)d votes"),
        "dawid-skene": _("a Dawid–Skene probability of %(threshold)s or more, of %(of)d votes"),
    }
    of_all = {
        "n-equal": _("%(needed)d equal votes"),
        "at-least": _("at least %(needed)d equal votes of all votes that are there"),
        "strict": _("more than half of all votes that are there"),
        "plurality": _("the most frequent answer of all votes that are there"),
        "dawid-skene": _(
            "a Dawid–Skene probability of %(threshold)s or more, of all votes that are there"
        ),
    }
    values = {"needed": policy.needed, "of": policy.of, "threshold": f"{policy.threshold:g}"}
    return (of_some if policy.of else of_all)[policy.rule] % values


def is_too_large(round: Round) -> bool:
    """Whether the round has more examples than can be decided while somebody waits."""
    return Example.objects.filter(round=round).count() > MOST_PREVIEWED


def preview(round: Round, policy: Policy) -> Preview:
    """What `policies.derive_round` would change now. Four queries; memory as `redecide.decided`."""
    found = Preview()
    before, after = Part(), Part()
    stored = _stored(round)
    row = next(stored, None)
    for case in decided(round, policy):
        while row and row[0] < case.example_id:
            row = next(stored, None)
        old = row[1] if row and row[0] == case.example_id else Standing()
        new = _standing(case)
        found.examples += 1
        if not case.by_program:  # the rates are people's
            before.cells[_cell(case, old)] += 1
            after.cells[_cell(case, new)] += 1
        if old != new:
            found.transitions[old.words, new.words] += 1
            if len(found.first) < SHOWN_CHANGES:
                found.first[case.example_id] = (old, new)
    found.before, found.after = round_rates(before.authors()), round_rates(after.authors())
    return found


def _stored(round: Round) -> Iterator[tuple[int, Standing]]:
    rows = Consensus.objects.filter(round=round, example__retracted_at__isnull=True)
    for pk, *names in rows.order_by("pk").values_list("pk", *Standing._fields).iterator():
        yield pk, Standing(*names)


def _standing(case: Case) -> Standing:
    decision = case.decision
    label, verdict = decision.label or "", decision.verdict or ""
    return Standing(decision.state, label, verdict, case.is_verified, case.is_validated_error)


def _cell(case: Case, standing: Standing) -> Cell:
    return Cell(
        case.annotator_id,
        case.outcome,
        case.votes > 0,
        standing.state == Consensus.State.DECIDED,
        standing.label or standing.verdict,
        standing.is_verified,
        standing.is_validated_error,
    )
