"""The confirmation of a catch: its author is notified once, and sees the catch as a card."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.humanize.templatetags.humanize import ordinal
from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Example
from core.accounts.models import Annotator
from dynabench.catches.selectors import select_own_catches, shorten_text
from leaderboard.people.standings import may_use_rankings
from validation.models import Consensus, Validation

CARD_LIFETIME = timedelta(days=7)
"""How long a confirmed catch is shown as the first card."""
MAX_CANDIDATES = 10
"""How many of the newest catches to look at, to find one in a task that is not sensitive."""


@dataclass(frozen=True)
class ConfirmedCatch:
    """A person's catch that people have just confirmed.

    agreeing_count, vote_count: how many judges agreed with the author, and how many judged it. Both
    are 0 if the owner decided, or if votes are still needed. position: the catch's position among
    the author's catches in the task, from 1.
    """

    example: Example
    decided_at: datetime
    text: str
    agreeing_count: int
    vote_count: int
    position: int
    is_shared: bool
    may_share: bool

    @property
    def announcement(self) -> str:
        """Return the sentences that announce the catch, without its text."""
        return " ".join([_("Catch confirmed."), self.agreement_sentence, self.position_sentence])

    @property
    def agreement_sentence(self) -> str:
        """Return a sentence about who agreed with the author."""
        if not self.vote_count:
            return _("The task's owner agreed with you.")
        return ngettext(
            "%(agreed)d of %(votes)d judge agreed with you.",
            "%(agreed)d of %(votes)d judges agreed with you.",
            self.vote_count,
        ) % {"agreed": self.agreeing_count, "votes": self.vote_count}

    @property
    def position_sentence(self) -> str:
        """Return a sentence about the catch's position among the author's catches in the task."""
        values = {"ordinal": ordinal(self.position), "task": self.example.round.task.name}
        # Translators: ordinal: a number such as 4th
        return _("Your %(ordinal)s catch in %(task)s.") % values


def find_confirmed_catch(annotator: Annotator, since: datetime) -> ConfirmedCatch | None:
    """Return the person's latest catch that was confirmed after `since`, or None.

    Leaves out sensitive tasks. One query, and two more if a catch is found.
    """
    newest_catches = select_own_catches(annotator).filter(consensus__decided_at__gt=since)
    rows = newest_catches.select_related("round__task", "consensus", "shared_catch")
    for example in rows.order_by("-consensus__decided_at", "-pk")[:MAX_CANDIDATES]:
        if not example.round.task.is_sensitive:
            return _describe_confirmed_catch(annotator, example)
    return None


def _describe_confirmed_catch(annotator: Annotator, example: Example) -> ConfirmedCatch:
    consensus = example.consensus
    assert consensus.decided_at  # by the condition of the caller
    agreeing_count = vote_count = 0
    # Before the last vote is given, votes are nobody's to see; owners' decisions need none.
    if consensus.decided_by != Consensus.DecidedBy.OWNER and not consensus.still_needed:
        agrees_with_author = Q(label=consensus.label, verdict=consensus.verdict)
        counts = Validation.objects.filter(example=example).aggregate(
            votes=Count("pk"), agreeing=Count("pk", filter=agrees_with_author)
        )
        agreeing_count, vote_count = counts["agreeing"], counts["votes"]
    # Also those that were written earlier and decided later are numbered in the order of decision.
    earlier_catches = select_own_catches(annotator).filter(round__task=example.round.task_id)
    is_shared = getattr(example, "shared_catch", None) is not None
    return ConfirmedCatch(
        example=example,
        decided_at=consensus.decided_at,
        text=shorten_text(example),
        agreeing_count=agreeing_count,
        vote_count=vote_count,
        position=earlier_catches.filter(consensus__decided_at__lte=consensus.decided_at).count(),
        is_shared=is_shared,
        may_share=may_use_rankings(annotator) and not is_shared,
    )
