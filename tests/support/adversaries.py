"""Adversaries of a sentiment task whose model follows a script."""

from core.accounts.models import User
from dynabench.adversaries.jobs import attack
from dynabench.adversaries.kinds.base import KINDS
from dynabench.adversaries.models import Adversary, AdversaryRun
from dynabench.adversaries.services import create_adversary, start_run
from tasks.models import Round, TaskMember
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)

PROBS = {"positive": 0.2, "negative": 0.7, "neutral": 0.1}
SURE = {"positive": 0.8, "negative": 0.1, "neutral": 0.1}
# The model says negative unless it reads “loved”, so a misspelled “loved” fools it.
SCRIPT = {
    "label": "negative",
    "prob": PROBS,
    "rules": [{"contains": "loved", "label": "positive", "prob": SURE}],
}
SENTENCES = "positive | We loved the small blue boat.\nnegative | The soup came cold and late."


def sentiment_round(**script) -> tuple[Round, User]:
    """An open round of the sentiment task, with a scripted target, and the task's owner."""
    round = RoundFactory(task=TaskFactory(code="sentiment"))
    for number in range(3):
        ContextFactory(round=round, fields={"prompt": f"The tour lasts {number} hours."})
    scripted_target(round, **(script or SCRIPT))
    owner = UserFactory()
    TaskMember.objects.create(task=round.task, user=owner, role="owner")
    return round, owner


def options_of(kind: str, **chosen) -> dict:
    """Complete options of a kind: its defaults, and those that are chosen."""
    return {one.name: one.default for one in KINDS[kind].settings} | chosen


def make_adversary(round: Round, owner: User, kind: str = "search", **values) -> Adversary:
    """An adversary of the round's task; values: options of the kind, or columns."""
    settings = {one.name for one in KINDS[kind].settings}
    if kind == "search":
        values.setdefault("sentences", SENTENCES)
    options = {name: value for name, value in values.items() if name in settings}
    columns = {name: value for name, value in values.items() if name not in settings}
    columns.setdefault("name", f"{kind} {Adversary.objects.count()}")
    return create_adversary(
        task=round.task,
        actor=owner,
        kind=kind,
        options=options_of(kind, **options),
        **columns,
    )


def give_to(adversary: Adversary, person: User) -> Adversary:
    """The adversary, whose program this person now runs."""
    adversary.program_user = person
    adversary.save()
    return adversary


def run_to_its_end(adversary: Adversary, actor: User | None = None) -> AdversaryRun:
    """Request a run, work on it until it is over, and return it."""
    run = start_run(adversary=adversary, actor=actor)
    return work_on(run)


def work_on(run: AdversaryRun) -> AdversaryRun:
    """Work on a queued run as workers do, slice after slice."""
    for _ in range(200):
        run.refresh_from_db()
        if run.is_over:
            return run
        attack(run.pk)
    raise AssertionError(f"{run} does not end: {run.message}")
