"""Simulated judges of a pilot: they vote on what simulated people wrote, through the services."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from random import Random

from annotation.models import Example
from core.accounts.models import Annotator, User, confirm_address
from core.accounts.services import get_annotator
from dynabench.campaigns.models import Campaign
from dynabench.studies.models import Study
from dynabench.studies.rules.plan import StudyPlan
from dynabench.studies.simulation_services import find_open_round
from tasks.config.schema import TaskConfig
from tasks.models import Task, TaskMember
from validation.consensus.claims import (
    find_accepting_vote,
    find_label_field,
    find_rejecting_vote,
)
from validation.consensus.consensus import Policy, Vote
from validation.decisions.consensus_rows import get_round_policy
from validation.judging.services import cast_validation, open_session
from validation.models import JudgeLease

JUDGE_DOMAIN = "pilot.invalid"
"""The domain of simulated judges' addresses, which no email reaches."""
JUDGED_MEASURES = ("caught", "valid", "agreement", "coverage")
"""The measures that need votes. Harm counts flags as harmful, which simulated judges never set."""
VALID_SHARE = 0.8
"""How often a simulated judge agrees with the author."""
MOST_JUDGES = 9
READING_TIME = timedelta(seconds=10)
"""How long a simulated judge has read an example."""


def needs_judges(plan: StudyPlan, campaigns: Sequence[Campaign]) -> bool:
    """Return whether an outcome, a rule of exclusion, or the pay of a plan depends on votes.

    campaigns: of the study's arms.
    """
    measures = {outcome.measure for outcome in plan.outcomes}
    measures |= {exclusion.measure for exclusion in plan.exclude}
    is_paid_by_votes = any(c.pay_accepted or c.pay_bonus for c in campaigns)
    return is_paid_by_votes or not measures.isdisjoint(JUDGED_MEASURES)


def can_be_judged(config: TaskConfig) -> bool:
    """Return whether simulated judges can vote in a task.

    Not where people decide, since a key is right, nor where judges answer about steps or criteria:
    these examples are left with people.
    """
    return config.verdict.type not in ("decide", "criteria") and config.validation.steps is None


def judge_examples(rehearsal: Study, random: Random) -> Iterator[str]:
    """Let simulated judges vote until no example of a pilot waits for them; yield before each vote.

    What they have judged before a kill is not judged again. Raises Refused.
    """
    for arm in rehearsal.arms.select_related("campaign__task"):
        task = arm.campaign.task
        if not can_be_judged(task.config):
            continue
        judges = _find_or_make_judges(rehearsal, task)
        is_waiting = True
        while is_waiting:
            is_waiting = False
            for number, judge in enumerate(judges, 1):
                yield f"Judge {number}, arm {arm.name}: judging"
                is_waiting |= _judge_next(judge, task, random)


def _find_or_make_judges(rehearsal: Study, task: Task) -> list[Annotator]:
    """Return the judges of a pilot, as many as its examples may need; members of the task."""
    policy = Policy(**get_round_policy(find_open_round(task)).policy)
    # One more than can be needed: nobody judges twice, and votes may be split.
    count = min(MOST_JUDGES, policy.max_votes or 3 * policy.needed)
    judges = []
    for number in range(count):
        email = f"{rehearsal.code}-{number}@{JUDGE_DOMAIN}"
        user = User.objects.filter(email=email).first()
        if user is None:
            user = User.objects.create_user(email)
            confirm_address(user)
        TaskMember.objects.get_or_create(
            task=task, user=user, defaults={"role": TaskMember.Role.JUDGE}
        )
        judges.append(get_annotator(user))
    return judges


def _judge_next(judge: Annotator, task: Task, random: Random) -> bool:
    """Let a judge vote on their next example; return whether there was one."""
    lease = open_session(validator=judge, task=task).lease
    if lease is None:
        return False
    # Votes that come too soon are refused.
    JudgeLease.objects.filter(pk=lease.pk).update(leased_at=lease.leased_at - READING_TIME)
    example = lease.example
    example.round.task = task
    vote = _draw_vote(task.config, example, random)
    cast_validation(validator=judge, example=example, vote=vote)
    return True


def _draw_vote(config: TaskConfig, example: Example, random: Random) -> Vote:
    """Return a vote that confirms the author's claim in VALID_SHARE of cases."""
    agrees, field = random.random() < VALID_SHARE, find_label_field(config)
    label = example.inputs.get(field) if field else None
    # Where judges are asked about the model, "incorrect" confirms that it was fooled.
    accepting_vote = find_accepting_vote(config, example.outcome, label)
    if agrees and accepting_vote:
        return accepting_vote
    if field is None:
        return find_rejecting_vote(config, example)
    labels = config.get_component(field).values
    return Vote(label=random.choice([other for other in labels if other != label]))


def select_judges(rehearsal: Study) -> list[int]:
    """Return the ids of the accounts of a pilot's judges."""
    start = f"{rehearsal.code}-"
    users = User.objects.filter(email__startswith=start, email__endswith=f"@{JUDGE_DOMAIN}")
    return list(users.values_list("pk", flat=True))
