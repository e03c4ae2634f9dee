"""A simulated round: people write, others judge, the owner handles gold items and disputes.

Everything goes through the services that the pages call.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from uuid import UUID

from django.utils import timezone

from annotation.attempts.services import (
    ask_targets,
    begin_attempt,
    retract_example,
    store_explanation,
)
from annotation.context_picking.services import assign_next
from annotation.models import Assignment, Attempt, Example, Report
from annotation.moderation import report_context
from annotation.refusals import CapReached, DuplicateExample, RoundClosed
from core.accounts.models import Annotator, User
from dynabench.operations.demo.community import draw_id
from dynabench.operations.demo.people import FLAG, UNCLEAR, Judge, Text, Writer
from tasks.models import Round
from validation.consensus.consensus import Vote
from validation.decisions.review_queue import Kind, get_review_page
from validation.decisions.services import override_consensus
from validation.judging.gold import mark_gold
from validation.judging.gold_pause import finish_refresher
from validation.judging.services import cast_validation, open_session, skip_example
from validation.models import Consensus, JudgeLease, Validation

SAME_CONTEXT_SHARE, RETRACTION_SHARE, REPORT_SHARE, SKIP_SHARE = 0.4, 0.02, 0.02, 0.02  # shares
GOLD_COUNT, GOLD_START_SHARE = 6, 0.4  # items a round, marked after this share of the round
PATIENCE_SECONDS = 120
READING_SECONDS = (4.0, 20.0)  # seconds that a judge takes for an example
EXAMPLES_PER_JUDGING = 5  # this many examples are written between two sessions of judging


class TargetSilent(Exception):
    """Raised if the round's target gives no answers. The message gives the reason."""


@dataclass
class Community:
    """The people of a task and what they wrote.

    accounts: their annotators by name. texts: the texts by the UUID of the example.
    """

    owner: User
    writers: Sequence[Writer]
    judges: Sequence[Judge]
    accounts: Mapping[str, Annotator]
    rng: Random
    texts: dict[UUID, Text] = field(default_factory=dict)

    def play(self, round: Round) -> None:
        """Write in an open round until its budget closes it, then judge all its examples."""
        for writer in self.writers:
            writer.begin_round()
        paces = [writer.pace for writer in self.writers]
        budget, has_gold = round.max_collected or 0, False
        while Round.objects.get(pk=round.pk).state == Round.State.OPEN:
            for writer in self.rng.choices(self.writers, paces, k=EXAMPLES_PER_JUDGING):
                self._write(writer, round)
            for judge in self.judges:
                self._judge(judge, round)
            if not has_gold and round.examples.count() > GOLD_START_SHARE * budget:
                has_gold = True
                self._mark_gold(round)
        # Nobody writes any more, so their quarter of an hour is over.
        Round.objects.filter(pk=round.pk).update(writing_until=timezone.now())
        while sum(self._judge(judge, round) for judge in self.judges):
            pass
        self._decide_disputes(round)

    def _write(self, writer: Writer, round: Round) -> None:
        """Write one example: take a context, write, submit, and learn from the answer."""
        annotator, rng = self.accounts[writer.name], writer.rng
        try:
            requested_kind = "context"
            if rng.random() < SAME_CONTEXT_SHARE:
                requested_kind = "current"
            assignment = assign_next(
                annotator=annotator, round=round, requested_kind=requested_kind
            )
            if rng.random() < REPORT_SHARE:
                self._report(annotator, assignment)
            context = assignment.context
            text, idea = writer.write(
                context.metadata["place"], context.fields["prompt"], assignment.goal
            )
            example = self._submit(annotator, assignment, text)
        # As people who meet a limit: they stop or try something else.
        except (CapReached, DuplicateExample, RoundClosed):
            return
        writer.learn(idea, example.outcome == Example.Outcome.FOOLED)
        if example.outcome == Example.Outcome.FOOLED and idea:
            store_explanation(example=example, metadata={"why_missed": [idea.way]})
        elif rng.random() < RETRACTION_SHARE:
            retract_example(example=example)

    def _submit(self, annotator: Annotator, assignment: Assignment, text: Text) -> Example:
        """Submit a text and return the stored example.

        Retries while the target is still loading. Raises TargetSilent, and RoundClosed if the round
        has closed or already has this text.
        """
        inputs = {"text": text.words, "label": assignment.goal}
        key, deadline = draw_id(self.rng), time.monotonic() + PATIENCE_SECONDS
        uuid = draw_id(self.rng)
        while time.monotonic() < deadline:
            attempt, is_new_attempt = begin_attempt(
                annotator=annotator, assignment=assignment, key=key, inputs=inputs
            )
            # Another process may have begun this attempt, which then also ends it.
            if is_new_attempt:
                attempt.uuid = uuid  # by the seed: votes and samples follow from it
                attempt.save(update_fields=["uuid"])
                ask_targets(attempt)
            attempt = Attempt.objects.select_related("example").get(pk=attempt.pk)
            if attempt.example:
                self.texts[attempt.example.uuid] = text
                return attempt.example
            if attempt.failure in ("closed", "duplicate"):
                raise RoundClosed(attempt.failure)
            time.sleep(0.5)
        raise TargetSilent(f"{assignment.round}: {attempt.failure or 'no answer'}")

    def _report(self, annotator: Annotator, assignment: Assignment) -> None:
        reason = self.rng.choice([Report.Reason.OTHER, Report.Reason.UNREADABLE])
        report_context(
            annotator=annotator,
            context=assignment.context,
            reason=reason,
            comment="I don't know that place.",
        )

    def _judge(self, judge: Judge, round: Round) -> bool:
        """Make the judge vote, skip or reread the guide; return False if nothing is left."""
        annotator = self.accounts[judge.name]
        session = open_session(validator=annotator, task=round.task)
        # Failed gold items: people read the guide again before they go on.
        if session.is_paused:
            finish_refresher(validator=annotator, task=round.task)
            return True
        if session.lease is None:
            return False
        example = session.lease.example
        example.round.task = round.task
        self._date_back_lease(session.lease, judge)
        if judge.rng.random() < SKIP_SHARE:
            try:
                skip_example(validator=annotator, example=example)
                return True
            except CapReached:
                pass
        text = self.texts.get(example.uuid)  # real people may write here too
        vote = UNCLEAR
        if text:
            vote = judge.vote(text)
        flag_reason = comment = ""
        if vote == FLAG:
            flag_reason, comment = Validation.FlagReason.UNCLEAR, "This is hardly a sentence."
        cast_validation(
            validator=annotator,
            example=example,
            vote=vote,
            flag_reason=flag_reason,
            comment=comment,
        )
        return True

    def _date_back_lease(self, lease: JudgeLease, judge: Judge) -> None:
        """Date the lease back by the time that reading takes, so that the demo need not wait."""
        rng = Random(f"{lease.example.uuid} {judge.name}")  # apart from what they say
        reading_began_at = lease.leased_at - timedelta(seconds=rng.uniform(*READING_SECONDS))
        # Votes that come too soon are refused.
        JudgeLease.objects.filter(pk=lease.pk).update(leased_at=reading_began_at)

    def _mark_gold(self, round: Round) -> None:
        """Mark the clearest decided examples as gold items, as the owner."""
        decided_by_votes = Consensus.objects.filter(
            round=round, state=Consensus.State.DECIDED, decided_by=Consensus.DecidedBy.VOTES
        )
        for consensus in decided_by_votes.exclude(label="").order_by("votes", "pk")[:GOLD_COUNT]:
            words = f"Most people read it as {consensus.label}."
            mark_gold(example=consensus.example, owner=self.owner, explanation=words)

    def _decide_disputes(self, round: Round) -> None:
        """Decide every second example without a consensus, as the owner."""
        for item in get_review_page([round], Kind.NO_CONSENSUS).items[::2]:
            text = self.texts.get(item.uuid)
            choice = FLAG
            if text and text.label:
                choice = Vote(label=text.label)
            override_consensus(
                example=Example.objects.get(pk=item.pk),
                owner=self.owner,
                choice=choice,
                reason="Read it once more: the last part decides.",
            )
