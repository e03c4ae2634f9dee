"""The rows with which the demo begins: its task, its people, and its first round."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext as _

from core.accounts.models import Annotator, User, confirm_address
from core.errors import Refused
from dynabench.operations.demo.people import Judge, Writer
from dynabench.operations.demo.texts import build_contexts
from tasks.contexts.services import store_contexts
from tasks.models import SIMULATED_TASK_CODE, Round, Task, TaskMember
from tasks.rounds.loop import register_target
from tasks.rounds.services import plan_round
from tasks.services import create_task
from tasks.targets.connect import build_serving_settings

EMAIL_DOMAIN = "demo.invalid"
"""The domain of simulated people's addresses.

No email reaches it, so nobody can sign in with it.
"""
TASK_FILE = Path(__file__).with_name("task.yaml")
CONTEXT_COUNT = 20


def draw_id(rng: Random) -> UUID:
    """Return a UUID that depends only on the state of the random generator."""
    return UUID(int=rng.getrandbits(128), version=4)


def make_task(actor: User | None = None) -> Task:
    """Create the demo's task. Raises Refused if a demo exists.

    The actor and the owners of official tasks become its owners.
    """
    if Task.objects.filter(code=SIMULATED_TASK_CODE).exists():
        raise Refused(_("A demo already exists. Remove it first."))
    task, _notes = create_task(
        code=SIMULATED_TASK_CODE, config_text=TASK_FILE.read_text(), actor=actor
    )
    role = TaskMember.Role.OWNER
    # Whoever runs the official tasks can look at the demo and delete it.
    owner_memberships = TaskMember.objects.filter(task__is_official=True, role=role)
    people = User.objects.filter(
        Q(pk__in=owner_memberships.values("user")) | Q(pk=actor and actor.pk)
    )
    TaskMember.objects.bulk_create(TaskMember(task=task, user=user, role=role) for user in people)
    return task


def make_owner(task: Task) -> User:
    """Create the task's simulated owner."""
    owner = make_user("sim-owner")
    TaskMember.objects.create(task=task, user=owner, role=TaskMember.Role.OWNER)
    return owner


def make_user(name: str) -> User:
    """Create an account with a confirmed email address and no password."""
    user = User.objects.create_user(f"{name}@{EMAIL_DOMAIN}")
    confirm_address(user)
    return user


def make_people(people: Sequence[Writer | Judge]) -> Mapping[str, Annotator]:
    """Create the people's accounts and return their annotators by name.

    Their pseudonyms show that they are simulated.
    """
    return {
        person.name: Annotator.objects.create(
            user=make_user(person.name), pseudonym=person.name, in_ranking=True
        )
        for person in people
    }


def plan_first_round(task: Task, owner: User, base: Path, tries: int, rng: Random) -> Round:
    """Plan the first round with a model folder as its target.

    tries: the number of examples that closes it.
    """
    round = plan_round(task=task, actor=owner, fields=build_plan(tries))
    rows = build_contexts(rng, CONTEXT_COUNT)
    store_contexts(round=round, rows=rows, file_name="places.jsonl", actor=owner)
    register_target(
        task=task,
        name=f"{task.code}-round-1",
        round=round,
        actor=owner,
        source=str(base),
        serving=build_serving_settings(task.config),
    )
    return round


def build_plan(tries: int) -> Mapping[str, int]:
    """Return a round's budget and its pay in cents."""
    return {"max_collected": tries, "pay_example": 20, "pay_validation": 5, "pay_bonus": 50}


def find_model_folder() -> Path:
    """Return the folder of the demo's trained targets."""
    return settings.MODELS_HOME / "targets" / SIMULATED_TASK_CODE
