"""A task's ruler: anchors chosen and kept secret, models placed on it, and expected scores."""

from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from core.errors import Refused
from core.jobs.queue import silence_queue
from evaluation.dataset_releases.build import Build
from evaluation.dataset_releases.services import is_publication_due
from evaluation.dataset_releases.undo_services import find_final_reasons
from evaluation.jobs import choose_ruler, refresh_rulers
from evaluation.models import Dataset, EvaluationRun, ExpectedScore, Ruler, RulerLink
from evaluation.runs.rulers import fitting
from evaluation.runs.rulers.selectors import list_lacking_models
from evaluation.runs.rulers.services import request_ruler, retire_ruler
from evaluation.scoring.ruler import prediction
from evaluation.test_sets.items import MIN_MODELS
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.services import change_set, make_version
from tasks.models import TaskMember
from tests.support.evaluations import accepted_model
from tests.support.factories import TaskFactory, UserFactory
from tests.support.rulers import (
    ANCHORS,
    FIRST,
    HELD,
    SECOND,
    answer,
    let_answer,
    make_ruler,
    make_sets,
)

pytestmark = pytest.mark.django_db
URL, API = "/own/nli/ruler/", "/api/v1/tasks/nli/ruler/"


@pytest.fixture(autouse=True)
def fit_fast(monkeypatch):
    """Leave out models in few parts: the fit itself has tests of its own."""
    monkeypatch.setattr(prediction, "MAX_FOLDS", 4)


@pytest.fixture
def task():
    return TaskFactory(code="nli")


@pytest.fixture
def owner(task):
    user = UserFactory()
    TaskMember.objects.create(task=task, user=user, role="owner")
    return user


@pytest.fixture
def sets(task):
    return make_sets(task)


@pytest.fixture
def ruler(task, owner, sets):
    """A ruler of 24 models that ran everything, 4 of which did not run the second round."""
    held, first, second = sets
    let_answer(task, [held, first, second], 22)
    let_answer(task, [held, first], 2, first=22)
    return make_ruler(task, owner)


def test_anchors_are_chosen_and_every_model_gets_a_score_on_every_round(ruler, sets):
    assert ruler.anchors.count() == ANCHORS
    assert set(ruler.anchors.values_list("version", flat=True)) == {sets[0].pk}
    assert ruler.teachers.count() == 24
    assert set(ruler.links.values_list("version__evaluation_set__name", "model_count")) == {
        (FIRST, 24),
        (SECOND, 22),
    }
    assert ExpectedScore.objects.count() == 2 * 24
    runs = EvaluationRun.objects.filter(version=sets[1]).prefetch_related("scores")
    plain = {run.submission_id: run.scores.get(metric="accuracy").value for run in runs}
    rows = ExpectedScore.objects.filter(link__version=sets[1])
    pairs = [(row.value, plain[row.standing.submission_id]) for row in rows]
    assert np.corrcoef(*zip(*pairs, strict=True))[0, 1] > 0.9
    assert all(0 <= row.low <= row.value <= row.high <= 1 for row in rows)
    for standing in ruler.standings.all():
        values = [row.value for row in standing.scores.all()]
        assert standing.value == pytest.approx(np.mean(values))


def test_a_new_model_is_added_without_a_fit(ruler, task, sets, monkeypatch):
    monkeypatch.setattr(fitting, "link_shares", pytest.fail)
    [model] = let_answer(task, sets[:1], 1, first=40)
    assert [one.model for one in list_lacking_models(ruler)] == [model]
    assert refresh_rulers() == 1
    standing = ruler.standings.get(submission=model)
    assert standing.scores.count() == 2
    assert standing.low <= standing.value <= standing.high
    assert list_lacking_models(ruler) == []
    assert refresh_rulers() == 0


def test_a_set_is_linked_again_once_a_tenth_more_models_ran_it(ruler, task, sets):
    former = RulerLink.objects.get(version=sets[2])
    let_answer(task, sets, 2, first=50)
    refresh_rulers()
    assert RulerLink.objects.get(version=sets[2]).pk == former.pk
    let_answer(task, sets, 1, first=52)
    refresh_rulers()
    assert RulerLink.objects.get(version=sets[2]).model_count == 25
    assert ExpectedScore.objects.count() == 2 * 27


def test_refusals_say_why(task, owner):
    def refuse(**fields):
        with pytest.raises(Refused) as refused:
            request_ruler(task=task, actor=owner, **fields)
        return refused.value.code

    assert refuse() == "no_items"
    held, *_others = make_sets(task)
    assert refuse() == "too_few_items"
    let_answer(task, [held], MIN_MODELS - 1)
    assert refuse(anchors=ANCHORS) == "too_few_models"
    assert not Ruler.objects.exists()


def test_versions_of_one_model_are_too_few_and_the_next_ruler_replaces_it(task, owner, sets):
    for number in range(MIN_MODELS):
        answer(accepted_model(task, name=f"net step {number}"), sets[0], np.arange(60) % 2 == 0)
    with silence_queue():
        ruler = request_ruler(task=task, actor=owner, anchors=ANCHORS)
    choose_ruler(ruler.pk)
    ruler.refresh_from_db()
    assert (ruler.state, ruler.anchors.count()) == ("failed", 0)
    assert "1 different" in ruler.error
    let_answer(task, sets, MIN_MODELS)
    assert make_ruler(task, owner).version == 2


def test_anchors_stay_secret_until_the_ruler_is_retired(ruler, task, owner, sets):
    one = sets[0].evaluation_set
    about = {"evaluation_set": one, "actor": owner, "description": "", "access": "standard"}
    for opened in ("answers_public", "may_leave"):
        settings = {"answers_public": False, "may_leave": False, opened: True}
        with pytest.raises(Refused) as refused:
            change_set(**about, **settings)
        assert (refused.value.code, refused.value.field) == ("anchors", opened)
    yesterday = str((timezone.now() - timedelta(days=1)).date())
    options = {"hold_back": True, "held_until": yesterday}
    dataset = Dataset.objects.create(
        round=one.held_of, version=1, state="done", options=options, finished_at=timezone.now()
    )
    assert not is_publication_due(dataset)
    assert Build(dataset).holds_back
    assert "anchors" in find_final_reasons(dataset)
    retire_ruler(ruler=ruler, actor=owner)
    assert is_publication_due(dataset)
    assert not Build(dataset).holds_back
    change_set(**about, answers_public=True, may_leave=True)
    assert refresh_rulers() == 0


def test_no_anchors_are_chosen_while_a_release_is_built(task, owner, sets):
    let_answer(task, sets, MIN_MODELS)
    Dataset.objects.create(round=sets[0].evaluation_set.held_of, version=1)
    with silence_queue():
        ruler = request_ruler(task=task, actor=owner, anchors=ANCHORS)
    choose_ruler(ruler.pk)
    ruler.refresh_from_db()
    assert (ruler.state, ruler.anchors.count()) == ("queued", 0)


def test_owners_choose_and_retire_on_the_page(client, task, owner, sets):
    let_answer(task, sets, 24)
    client.force_login(owner)
    assert client.post(URL, {"anchors": 5, "seed": 1}).status_code == 422
    assert client.post(URL, {"anchors": ANCHORS, "seed": 1}).status_code == 302
    assert client.post(URL, {"anchors": ANCHORS, "seed": 1}).status_code == 422
    assert client.get(URL).context["ruler"].state == "queued"
    choose_ruler(Ruler.objects.get().pk)
    model = accepted_model(task, name="lacks")
    page = client.get(URL)
    assert [one.model for one in page.context["page"]] == [model]
    assert [one.is_linked for one in page.context["links"]] == [True, True]
    assert client.post(f"{URL}runs/").status_code == 302
    assert EvaluationRun.objects.filter(submission=model, version=sets[0]).exists()
    assert client.post(f"{URL}retire/").status_code == 302
    page = client.get(URL)
    assert page.context["ruler"] is None
    assert [one.version for one in page.context["former"]] == [1]


def test_the_api_chooses_reads_and_retires(client, task, owner, sets):
    let_answer(task, sets, 24)
    client.force_login(owner)
    assert client.get(API).status_code == 404
    answer_ = client.post(API, {"anchors": ANCHORS}, content_type="application/json")
    assert (answer_.status_code, answer_.json()["state"]) == (202, "queued")
    choose_ruler(Ruler.objects.get().pk)
    accepted_model(task, name="lacks")
    body = client.get(API).json()
    assert (body["state"], body["models"], body["teachers"]) == ("done", 24, 24)
    assert [one["is_linked"] for one in body["links"]] == [True, True]
    assert [(one["name"], one["missing"]) for one in body["lacking"]] == [("lacks", [HELD])]
    assert client.post(f"{API}runs/", content_type="application/json").json()["requested"] > 0
    assert client.delete(API).status_code == 204
    assert client.get(API).status_code == 404


@pytest.mark.parametrize(
    ("role", "reads", "chooses"), [("editor", 200, 403), ("reviewer", 403, 403)]
)
def test_only_owners_choose(client, task, role, reads, chooses):
    user = UserFactory()
    client.force_login(user)
    assert {client.get(URL).status_code, client.post(API).status_code} == {404}
    TaskMember.objects.create(task=task, user=user, role=role)
    assert client.get(URL).status_code == reads
    for answer_ in (
        client.post(URL, {"anchors": ANCHORS, "seed": 1}),
        client.post(f"{URL}retire/"),
        client.post(API, content_type="application/json"),
        client.delete(API),
    ):
        assert answer_.status_code == chooses


def test_withdrawn_anchors_keep_new_models_out_and_the_page_says_so(
    client, ruler, task, owner, sets
):
    gone = ruler.anchors.first().uid
    rows = [row for row in read_set_rows(sets[0]) if row.uid != gone]
    make_version(sets[0].evaluation_set, rows, None)
    client.force_login(owner)
    assert client.get(URL).context["withdrawn"] == [gone]
    assert refresh_rulers() == 0
