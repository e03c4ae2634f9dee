"""Kinds of news about the examples that a person wrote, and the rounds in which they write."""

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
CLOSING_TIME = timedelta(hours=36)
"""How long before its end a round is announced as closing tomorrow.

The next day's digest would come too late.
"""


class UnconfirmedExamples(PersonalNews, name="invalid"):
    """The news that judges did not confirm an example of the person."""

    label = gettext_lazy("Judges disagreed with one of your examples")
    place = 3

    def read_news(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield this news and the news of examples sent back, because one query reads both."""
        rows = Consensus.objects.filter(
            build_user_filter("example__annotator__user", user),
            decided_at__gte=now - RECENT_TIME,
            is_verified=False,
            example__retracted_at=None,
        )
        # One query for all, as the digest reads the examples of everybody.
        decisions = rows.select_related("example__annotator__user", "example__round__task")
        for decision in decisions.prefetch_related("example__validations"):
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

    def build_sentence(self, words: Mapping[str, Any]) -> str:
        """Return the sentence, with the flags that judges chose as reasons."""
        text = _("Judges disagreed with one of your examples.")
        if not words["reasons"]:
            return text
        return " ".join([text, _("The judges' reasons: %(reasons)s") % words])


class SentBackExamples(PersonalNews, name=SENT_BACK):
    """The news that a reviewer sent an example back to the person."""

    label = gettext_lazy("One of your examples was sent back")
    place = 4

    def read_news(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield nothing, because `UnconfirmedExamples.read` yields this news, too."""
        yield from ()

    def build_sentence(self, words: Mapping[str, Any]) -> str:
        """Return the sentence that asks for a correction."""
        return _("One of your examples was sent back. Read the comment and edit it.")


class ClosingRounds(PersonalNews, name="closing"):
    """The news that a round in which the person is writing ends soon."""

    label = gettext_lazy("A round you write in closes tomorrow")
    place = 5

    def read_news(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield news of the rounds that end soon."""
        rows = Assignment.objects.filter(
            build_user_filter("annotator__user", user),
            round__state=Round.State.OPEN,
            round__ends_at__gt=now,
            round__ends_at__lte=now + CLOSING_TIME,
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
                self.name, writer, assignment.round.task, ends_at - CLOSING_TIME, path, words
            )

    def build_sentence(self, words: Mapping[str, Any]) -> str:
        """Return the sentence that says when the round closes."""
        return _("Round %(round)d closes on %(at)s.") % words
