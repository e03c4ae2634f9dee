"""A slice of a run: choose who does it, and end the run or return it to the queue.

A run is done in slices, so that other work gets its turn. The locks are listed in docs/locking.md.
"""

from functools import partial

from django.utils import timezone
from django.utils.translation import gettext_noop

from core.errors import Refused
from core.jobs.queue import enqueue
from dynabench.adversaries.masked_services import LoggedWords
from dynabench.adversaries.models import AdversaryRun
from dynabench.adversaries.run_services import RunSlice
from dynabench.adversaries.run_steps import RunEnded, SliceOver
from dynabench.adversaries.services import find_kind
from dynabench.adversaries.talk_services import TalkSlice
from evaluation.contract import ImpossibleJob
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work

End = AdversaryRun.End
PAUSED_MESSAGE = gettext_noop(
    "Paused while other jobs have their turn. The run continues by itself."
)


def run_adversary(run: AdversaryRun, seconds: float | None = None) -> None:
    """Work on a claimed run for a slice of time, by default that of its kind.

    Takes no lock: the run is leased. Raises LeaseLost.
    """
    do_job_work(run, partial(_work_slice, seconds=seconds))


def _work_slice(run: AdversaryRun, heartbeat: Heartbeat, seconds: float | None) -> None:
    try:
        end = _do_slice(run, heartbeat, seconds)
    except RunEnded as ended:
        end = ended.end
    except SliceOver:
        # The models have answered, so an earlier time in which they were away is over.
        heartbeat.call_patiently(
            lambda: leases.return_to_queue(run, timezone.now(), PAUSED_MESSAGE, away_since=None)
        )
        enqueue(run.function, run.pk)
        return
    except Refused as refusal:
        raise ImpossibleJob(str(refusal)) from None
    heartbeat.call_patiently(lambda: leases.finish_job(run, ended_by=end))


def _do_slice(run: AdversaryRun, heartbeat: Heartbeat, seconds: float | None) -> AdversaryRun.End:
    """Do a slice and return how the run ended. Raises RunEnded, SliceOver, Refused, LeaseLost."""
    kind = find_kind(run.adversary)
    # Only a run whose program let its lease expire is ever queued.
    if kind.is_program:
        return End.GONE
    if kind.is_container:
        # Imported here, because it needs Docker's library, which only workers have.
        from dynabench.adversaries.container_worker import run_container

        run_container(run, heartbeat, seconds)
        return End.FINISHED
    with LoggedWords(run, heartbeat.beat) as masked_words:
        slice_class = TalkSlice if run.round.task.config.talk else RunSlice
        slice_class(run, heartbeat, masked_words, seconds).work()
    return End.FINISHED
