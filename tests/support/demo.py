"""A small simulated community against a target that answers by rule."""

from random import Random

from annotation.models import Example
from dynabench.operations.demo.community import build_plan, make_owner, make_people, make_task
from dynabench.operations.demo.loop import seed_random
from dynabench.operations.demo.people import draw_people
from dynabench.operations.demo.play import Community
from dynabench.operations.demo.texts import build_contexts
from tasks.contexts.services import store_contexts
from tasks.models import Round, Task
from tasks.rounds.services import plan_round
from tasks.rounds.states import set_round_state
from tests.support.factories import scripted_target
from validation.models import Validation


def played_round(seed: int = 3, tries: int = 20) -> Round:
    """The demo's first round, written, judged and closed."""
    seed_random(seed)
    chance = Random(seed)
    task = make_task()
    owner = make_owner(task)
    writers, judges = draw_people(seed, 12, 8)
    people = Community(owner, writers, judges, make_people([*writers, *judges]), chance)
    round = plan_round(task=task, actor=owner, fields=build_plan(tries))
    store_contexts(round=round, rows=build_contexts(chance, 8), file_name="places.jsonl")
    target = scripted_target(
        round, label="neutral", rules=[{"contains": "not", "label": "negative"}]
    )
    target.task = task
    people.play(set_round_state(round=round, state=Round.State.OPEN, actor=owner))
    round.refresh_from_db()
    return round


def rows(task: Task) -> list[tuple[object, ...]]:
    """What was written, by whom, with what outcome."""
    found = Example.objects.filter(round__task=task).order_by("pk")
    return list(found.values_list("uuid", "annotator__pseudonym", "inputs", "outcome"))


def votes(task: Task) -> list[tuple[object, ...]]:
    """Who voted what on which example."""
    cast = Validation.objects.filter(example__round__task=task).order_by("pk")
    return list(cast.values_list("example__uuid", "validator__pseudonym", "label", "verdict"))
