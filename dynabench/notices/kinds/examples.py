"""News for people about the examples that they wrote, and the rounds in which they write."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Assignment
from core.accounts.models import User
from dynabench.notices.news import RECENT_TIME, build_user_filter
from dynabench.notices.registry import News, PersonalNews
from tasks.models import Round
from validation.models import Consensus

SENT_BACK = "sent-back"
CLOSES_WITHIN = timedelta(hours=36)
"""A round that ends within this time closes tomorrow: the next digest would be late."""


class Invalid(PersonalNews, name="invalid"):
    """News of examples that judges did not confirm."""

    label = gettext_lazy("people did not agree with an example of yours")
    place = 3

    def read(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield such news and that of examples sent back, since one query reads both."""
        rows = Consensus.objects.filter(
            build_user_filter("example__annotator__user", user),
            decided_at__gte=now - RECENT_TIME,
            is_verified=False,
            example__retracted_at=None,
        )
        # One query for all, as the digest reads the examples of everybody.
        about = rows.select_related("example__annotator__user", "example__round__task")
        for decision in about.prefetch_related("example__validations"):
            example = decision.example
            assert example.annotator
            task, writer = example.round.task, example.annotator.user
            assert writer
            assert decision.decided_at
            page = f"{reverse('me:work')}?status=%s&task={task.code}#examples"
            if decision.is_sent_back:
                path = page % "sent-back"
                yield News(SENT_BACK, writer, task, decision.decided_at, path, {})
                continue
            counts = Counter(
                vote.get_flag_reason_display()
                for vote in example.validations.all()
                if vote.flag_reason
            )
            reasons = "; ".join(f"{words} ({n})" for words, n in counts.most_common())
            path = page % "not-agreed"
            yield News(self.name, writer, task, decision.decided_at, path, {"reasons": reasons})

    def sentence(self, words: Mapping[str, Any]) -> str:
        """Return the sentence, with the names of the flags that judges chose as reasons."""
        text = _("People did not agree with an example of yours.")
        if not words["reasons"]:
            return text
        return " ".join([text, _("Their reasons: %(reasons)s") % words])


class SentBack(PersonalNews, name=SENT_BACK):
    """News of examples that a reviewer sent back to their author."""

    label = gettext_lazy("an example of yours was sent back")
    place = 4

    def read(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield nothing, because `Invalid.read` yields this news, too."""
        yield from ()

    def sentence(self, words: Mapping[str, Any]) -> str:
        """Return the sentence that asks for a correction."""
        return _("An example of yours was sent back. Read why, and mend it.")


class Closing(PersonalNews, name="closing"):
    """News of rounds that end soon, for people who are writing in them."""

    label = gettext_lazy("a round in which you write closes tomorrow")
    place = 5

    def read(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield news of the rounds that end soon."""
        rows = Assignment.objects.filter(
            build_user_filter("annotator__user", user),
            round__state=Round.State.OPEN,
            round__ends_at__gt=now,
            round__ends_at__lte=now + CLOSES_WITHIN,
            left_at=None,
        )
        for assignment in rows.select_related("annotator__user", "round__task"):
            ends_at, writer = assignment.round.ends_at, assignment.annotator.user
            assert ends_at
            assert writer
            # The time in the words of the language in which this is read.
            words = {"round": assignment.round.number, "at": date_format(ends_at, "j M, H:i")}
            path = reverse("annotation:write", args=[assignment.round.task.code])
            yield News(
                self.name, writer, assignment.round.task, ends_at - CLOSES_WITHIN, path, words
            )

    def sentence(self, words: Mapping[str, Any]) -> str:
        """Return the sentence that says when the round closes."""
        return _("Round %(round)d closes on %(at)s.") % words
