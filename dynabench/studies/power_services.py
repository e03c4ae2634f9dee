"""Simulate the studies of a plan on the queue, to learn its power before it is frozen."""

import time

from django.db import transaction
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Refused
from core.jobs.queue import enqueue
from dynabench.studies.models import PlanSimulation
from dynabench.studies.rules.plan import StudyPlan, compute_plan_hash, read_plan
from dynabench.studies.services import parse_site_plan
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.models.jobs import UNFINISHED_STATES

MAX_STUDIES = 1000
"""The studies of a simulation: power is then known to 3 points."""
MAX_SECONDS = 120.0
"""After this time a simulation of a large plan ends with fewer studies."""
MAX_CHUNK_VALUES = 2_000_000
"""The values of the studies that are simulated between two heartbeats."""
MAX_WAITING = 3
"""How many simulations of one person may wait at once."""


@transaction.atomic
def request_simulation(*, plan_text: str, actor: User) -> PlanSimulation:
    """Queue the simulation of a plan, and return it. One that is there is not made again.

    Takes no lock: hashes are unique. Raises Refused or Invalid.
    """
    parse_site_plan(plan_text)
    own_rows = PlanSimulation.objects.filter(requested_by=actor, state__in=UNFINISHED_STATES)
    if own_rows.count() >= MAX_WAITING:
        raise Refused(_("Your other simulations are still running. Wait a minute."))
    simulation, is_new = PlanSimulation.objects.get_or_create(
        plan_hash=compute_plan_hash(plan_text),
        defaults={"plan_text": plan_text, "requested_by": actor},
    )
    if is_new:
        enqueue(simulation.function, simulation.pk)
    elif simulation.state != PlanSimulation.State.DONE:
        leases.requeue_jobs(PlanSimulation.objects.filter(pk=simulation.pk))
    return simulation


def find_simulation(plan_text: str) -> PlanSimulation | None:
    """Return the simulation of a plan, or None."""
    return PlanSimulation.objects.filter(plan_hash=compute_plan_hash(plan_text)).first()


def run_simulation(simulation: PlanSimulation) -> None:
    """Do the work of a claimed simulation."""
    do_job_work(simulation, _simulate)


def _simulate(simulation: PlanSimulation, heartbeat: Heartbeat) -> None:
    """Simulate the studies in chunks, and store their means. Raises LeaseLost."""
    from dynabench.studies.rules.simulation import simulate_studies  # numpy: only in workers

    plan, ends_at = read_plan(simulation.plan_text), time.monotonic() + MAX_SECONDS
    sums = dict.fromkeys(("false_alarms", "power", "coverage95"), 0.0)
    count = 0
    while count < MAX_STUDIES and (count == 0 or time.monotonic() < ends_at):
        chunk = min(_count_chunk(plan), MAX_STUDIES - count)
        # Another seed for each chunk, so that no study is simulated twice.
        results = simulate_studies(plan, chunk, plan.size.effect, seed=count)._asdict()
        for name in sums:
            sums[name] += chunk * results[name]
        count += chunk
        heartbeat.begin_step(count / MAX_STUDIES, "")
    means = {name: total / count for name, total in sums.items()}
    leases.finish_job(simulation, studies=count, **means)


def _count_chunk(plan: StudyPlan) -> int:
    """Return how many studies of a plan are simulated at a time."""
    arms = len(plan.arms) if plan.design == "within" else 1
    values = plan.size.people * plan.size.each * arms * len(plan.outcomes)
    return max(1, min(100, MAX_CHUNK_VALUES // values))
