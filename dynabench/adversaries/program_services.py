"""Runs of programs outside the site, which claim a run, ask the models and end it by the API.

The run's lease belongs to the program. If it asks nothing for PROGRAM_LEASE, the run ends. Its
budget, its log and its submissions are those of any run. The locks are listed in docs/locking.md.
"""

import math
import time
import uuid
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Invalid, Refused, Unavailable
from dynabench.adversaries.kinds.base import Probe
from dynabench.adversaries.models import Adversary, AdversaryRun, AdversaryTry
from dynabench.adversaries.run_services import NO_TEXT_MESSAGE, RunSlice
from dynabench.adversaries.run_steps import KnownTry, RunEnded
from dynabench.adversaries.services import create_run, find_kind
from evaluation.contract import ImpossibleJob, NotNow, ServerAway
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat, LeaseLost
from tasks.config.loading import validate_inputs
from tasks.models import Context

PROGRAM_LEASE = timedelta(minutes=10)
"""How long a program may think between two questions."""
End = AdversaryRun.End


class ProgramQuestion(NamedTuple):
    """A text about which a program asks. context: the id of the text that it is about, or None."""

    text: str
    label: str
    step: str = ""
    is_offered: bool = True
    context: int | None = None


def begin_program_run(*, adversary: Adversary, actor: User) -> AdversaryRun:
    """Begin a run that belongs to whoever has its lease token. Locks as `create_run` does.

    Raises Refused.
    """
    if not find_kind(adversary).is_program:
        raise Refused(_("This adversary isn’t a program. Start it on its page."), code="program")
    now = timezone.now()
    return create_run(
        adversary=adversary,
        actor=actor,
        state=AdversaryRun.State.RUNNING,
        lease_token=uuid.uuid4(),
        lease_until=now + PROGRAM_LEASE,
        started_at=now,
        attempts=1,
    )


def end_program_run(*, run: AdversaryRun) -> None:
    """End a run whose program is done. Takes no lock. Raises Refused if it is over."""
    try:
        leases.finish_job(run, ended_by=End.FINISHED)
    except LeaseLost:
        raise _build_over_refusal() from None


def ask_for_program(*, run: AdversaryRun, question: ProgramQuestion) -> AdversaryTry | None:
    """Return the try of a program's question; None if the run ended before it was asked.

    A question that the run's adversary has asked in this round gets the logged answer. Takes no
    lock: the run is reserved by one conditional update. Raises Invalid, Refused, and Unavailable
    while a model is away.
    """
    own_rows = AdversaryRun.objects.filter(
        pk=run.pk, state=AdversaryRun.State.RUNNING, lease_token=run.lease_token
    )
    # Two questions at once would each take the other's try for one that a dead process left.
    was_left = _reserve(run, own_rows)
    try:
        # The time between questions counts, too: it is the program that takes it.
        begun_at = run.started_at or timezone.now()
        own_rows.update(seconds=(timezone.now() - begun_at).total_seconds())
        # Those of an earlier run, too, whose process died.
        closes_all = was_left or run.calls == 0
        return ProgramSlice(run, question, closes_all=closes_all).ask_question()
    except LeaseLost:
        raise _build_over_refusal() from None
    except (NotNow, ServerAway) as error:
        raise Unavailable(str(error)) from None
    except ImpossibleJob as error:
        leases.fail_job(run, str(error))
        raise Refused(str(error), code="failed") from None
    finally:
        # Also after a failure, because the program may go on at once.
        own_rows.update(asking_until=None, lease_until=timezone.now() + PROGRAM_LEASE)


def _reserve(run: AdversaryRun, own_rows: QuerySet[AdversaryRun]) -> bool:
    """Reserve a run for one question; return whether a dead process left one.

    Raises Refused if the run is over or asks another one.
    """
    now = timezone.now()
    # A process that died during a question leaves the time, which then passes.
    longest = timedelta(seconds=3 * settings.LIVE_DEADLINE_SECONDS)
    for was_left, is_free in ((False, Q(asking_until=None)), (True, Q(asking_until__lt=now))):
        if own_rows.filter(is_free).update(asking_until=now + longest, lease_until=now + longest):
            return was_left
    if own_rows.exists():
        message = _("This run is waiting for another answer. Ask one question at a time.")
        raise Refused(message, code="asking")
    raise _build_over_refusal()


def _build_over_refusal() -> Refused:
    return Refused(_("This run is over. Begin another one."), code="over")


class ProgramSlice(RunSlice):
    """A question of a program within its run.

    It reads only what concerns the question: a round may have many thousands of texts and tries.
    """

    def __init__(self, run: AdversaryRun, question: ProgramQuestion, *, closes_all: bool) -> None:
        """closes_all: whether tries of other questions may be left by a dead process.

        Raises Invalid if the round lacks the question's text, and ImpossibleJob.
        """
        self._question, self._closes_all = question, closes_all
        super().__init__(run, Heartbeat(run))

    def ask_question(self) -> AdversaryTry | None:
        """Return the try of the question, asked now if it never was.

        Ends the run if a limit is reached; returns None if that was before the question. Raises
        Invalid, NotNow, ServerAway, ImpossibleJob and LeaseLost.
        """
        question, [context] = self._question, self._contexts
        # A question has a deadline of its own, so no other job waits for it.
        self._slice_ends_at = math.inf
        self._counted_until = time.monotonic()
        if question.label not in self._config.goal_choices:
            raise Invalid(_("Choose one of the task’s labels."), field="label")
        probe = Probe(question.text, question.step, question.is_offered)
        full_question = self._build_question(question.label, probe, context)
        problems = validate_inputs(self._config, context.fields, full_question.inputs)
        if question.is_offered and problems:
            raise Invalid(next(iter(problems.values()))[0], field="text")
        asked_rows = self._list_tries().filter(digest=full_question.digest)
        # One question is asked at a time, so whoever still asks this one is dead.
        self._close_interrupted_tries(asked_rows)
        self._known.update(self._read_tries(asked_rows))
        try:
            # Also for what is known, so that a program that repeats itself reaches its minutes.
            self._check_budget()
            self._follow_up(full_question)
        except RunEnded as ended:
            leases.finish_job(self._run, ended_by=ended.end)
        return asked_rows.select_related("run", "example").first()

    def _load_tries(self) -> dict[str, KnownTry]:
        """Return no tries: only the one of the question is read."""
        if self._closes_all:
            self._close_interrupted_tries(self._list_tries())
        return {}

    def _list_contexts(self) -> list[Context]:
        """Return the text that the question is about. Raises Invalid and ImpossibleJob."""
        contexts = self._find_contexts()
        any_context = contexts.first()
        if any_context is None:
            raise ImpossibleJob(NO_TEXT_MESSAGE)
        if self._question.context is None:
            if self._reads(any_context):
                raise Invalid(_("Say which text of the round this is about."), field="context")
            return [any_context]
        context = contexts.filter(pk=self._question.context).first()
        if context is None:
            raise Invalid(_("The round has no such text."), field="context")
        return [context]

    def _take_turn(self) -> Context:
        contexts = self._find_contexts()
        return contexts[self._run.examples % contexts.count()]
