"""The rows that the demo begins with: its task, its people, and its first round."""

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
from tasks.models import SIMULATED, Round, Task, TaskMember
from tasks.rounds.loop import register_target
from tasks.rounds.services import plan_round
from tasks.services import create_task
from tasks.targets.connect import build_serving_settings

EMAIL_DOMAIN = "demo.invalid"
"""The domain of simulated people's addresses: no mail reaches it, and nobody signs in by it."""
TASK_FILE = Path(__file__).with_name("task.yaml")
CONTEXT_COUNT = 20


def new_id(chance: Random) -> UUID:
    """Return a UUID that depends only on the random generator's seed."""
    return UUID(int=chance.getrandbits(128), version=4)


def make_task(actor: User | None = None) -> Task:
    """Create the task.

    The actor and the owners of official tasks become its owners. Raises Refused.
    """
    if Task.objects.filter(code=SIMULATED).exists():
        raise Refused(_("There is a demo. Take it away first, as docs/demo.md says."))
    task, _notes = create_task(code=SIMULATED, config_text=TASK_FILE.read_text(), actor=actor)
    role = TaskMember.Role.OWNER
    # Whoever runs the official tasks can look at the demo and delete it.
    official = TaskMember.objects.filter(task__is_official=True, role=role)
    people = User.objects.filter(Q(pk__in=official.values("user")) | Q(pk=actor and actor.pk))
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
        simulated.name: Annotator.objects.create(
            user=make_user(simulated.name), pseudonym=simulated.name, in_ranking=True
        )
        for simulated in people
    }


def plan_first_round(task: Task, owner: User, base: Path, tries: int, chance: Random) -> Round:
    """Plan the first round with a model folder as its target.

    tries: the number of examples that closes it.
    """
    round = plan_round(task=task, actor=owner, fields=build_plan(tries))
    rows = build_contexts(chance, CONTEXT_COUNT)
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
    return settings.MODELS_HOME / "targets" / SIMULATED
