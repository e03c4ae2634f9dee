"""The functions that queue workers call for studies, and the jobs that run every minute."""

from core.periodic import register_minutely
from dynabench.studies.model_alone_services import ask_models_alone
from dynabench.studies.models import Pilot, PlanSimulation
from dynabench.studies.pilot_services import run_pilot
from dynabench.studies.power_services import run_simulation
from dynabench.studies.services import match_draws
from evaluation.isolation.queue.leases import claim_job
from evaluation.isolation.queue.lifecycle import do_claimed_job


def simulate_plan(simulation_id: int) -> None:
    """Simulate the studies of a plan."""
    do_claimed_job(claim_job(PlanSimulation, simulation_id), run_simulation)


def play_pilot(pilot_id: int) -> None:
    """Let simulated people take part in a pilot."""
    do_claimed_job(claim_job(Pilot, pilot_id), run_pilot)


@register_minutely(counts="draws matched", why="People who were drawn take their places.")
def match_study_draws() -> int:
    """Note which place each drawn person took."""
    return match_draws()


@register_minutely(
    counts="cases answered by models alone", why="A study compares people with their model alone."
)
def ask_study_models() -> int:
    """Ask the models of studies about the cases that people decide."""
    return ask_models_alone()
