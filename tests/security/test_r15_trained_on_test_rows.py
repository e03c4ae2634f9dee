"""A score is marked where its model was trained on the set's own examples, and nothing leaks by it.

Training rows that hold 90 of 300 sealed examples raise the score, and no reader could know. But how
many of somebody's texts are in a set whose inputs are secret is a way to ask for these inputs.
"""

import pytest

from evaluation.models import EvaluationRun, TrainedRows
from evaluation.runs.execute import execute_run
from evaluation.runs.services import claim_next_run
from evaluation.submissions.services import withdraw_model
from evaluation.submissions.training_data import compute_digests, read_training_rows
from evaluation.test_sets.seen_in_training import SEEN_WARNING
from tests.support.evaluations import (
    LABELS,
    ScriptedRunner,
    accepted_model,
    nli_rows,
    queued_run,
    run_with,
    set_version,
)
from tests.support.factories import TaskFactory, UserFactory

pytestmark = pytest.mark.django_db
SIZE = 300


@pytest.fixture(autouse=True)
def _storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


def rows(number):
    """Training rows with `number` examples of the set, otherwise written."""
    taken = [
        {**row.inputs, "hypothesis": f"{row.inputs['hypothesis'].upper()} ", "label": row.gold[0]}
        for row in nli_rows(SIZE)[:number]
    ]
    return [*taken, *({"premise": f"Ada has {n} cats.", "hypothesis": "So.", "label": LABELS[n]}
                      for n in range(3))]  # fmt: skip


@pytest.fixture
def evaluated(task, monkeypatch):
    """A published model that learned from rows, evaluated on a version of a set."""
    run_with(monkeypatch, ScriptedRunner())

    def run(version, number, owner=None, name="rows"):
        model = accepted_model(
            task, owner or UserFactory(), name=name, kind="rows", is_published=True
        )
        learned = read_training_rows(task, list(enumerate(rows(number), 1)))
        TrainedRows.objects.create(submission=model, digests=compute_digests(task, learned))
        queued_run(model, version)
        execute_run(claim_next_run())
        return model

    return run


def told(client, model, user=None):
    """What the API and the page of the model tell: the part, and whether it is marked."""
    if user:
        client.force_login(user)
    else:
        client.logout()
    (run,) = client.get(f"/api/v1/models/{model.pk}/runs/").json()["results"]
    page = client.get(f"/m/{model.pk}/").text
    is_marked = SEEN_WARNING in run["warnings"]
    assert is_marked == (SEEN_WARNING in page)
    return run["overlap"], is_marked


def test_where_inputs_stay_everybody_reads_a_mark_and_editors_the_number(client, task, evaluated):
    version = set_version(task, "sealed", size=SIZE, answers_public=False)
    owner, editor = UserFactory(), UserFactory()
    task.members.create(user=editor, role="editor")
    model = evaluated(version, 90, owner)
    assert EvaluationRun.objects.get().seen == 90
    for reader in (None, UserFactory(), owner):
        assert told(client, model, reader) == (None, True)
    assert told(client, model, editor) == (0.3, True)


def test_the_board_marks_it(client, task, evaluated):
    version = set_version(task, "sealed", size=SIZE, answers_public=False)
    evaluated(version, 90, name="learned it")
    clean = evaluated(version, 0, name="clean")
    rows = client.get("/t/nli/leaderboard/").text.split("<tr")
    marked = {name for name in ("learned it", "clean") for row in rows
              if f">{name}<" in row and "With warnings" in row}  # fmt: skip
    assert marked == {"learned it"}
    assert told(client, clean) == (None, False)


def test_where_inputs_may_leave_everybody_reads_the_number(client, task, evaluated):
    version = set_version(task, "open", size=SIZE, may_leave=True)
    assert told(client, evaluated(version, 90)) == (0.3, True)
    few = evaluated(set_version(task, "other", size=SIZE, may_leave=True), 1)
    assert told(client, few) == (1 / SIZE, False)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_few_texts_are_no_way_to_ask_what_is_in_a_secret_set(client, task, evaluated, number):
    version = set_version(task, "sealed", size=SIZE, answers_public=False)
    owner = UserFactory()
    model = evaluated(version, number, owner)
    assert EvaluationRun.objects.get().seen == number
    assert told(client, model, owner) == (None, False)


def test_a_result_that_is_kept_back_tells_no_bit_more(client, task, evaluated):
    version = set_version(task, "sealed", size=24, answers_public=False)  # shows one result
    mallory = UserFactory()
    assert told(client, evaluated(version, 12, mallory, "one"), mallory) == (None, True)
    assert told(client, evaluated(version, 12, mallory, "two"), mallory) == (None, False)


def test_what_is_kept_of_the_rows_goes_with_the_model(task, evaluated):
    model = evaluated(set_version(task, "open"), 3)
    assert TrainedRows.objects.exists()
    withdraw_model(submission=model, actor=None)
    assert not TrainedRows.objects.exists()
