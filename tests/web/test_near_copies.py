"""Models whose answers are nearly those of a published one: found after a run, and who is told."""

import pytest

from evaluation.contract import SetRow
from evaluation.models import EvaluationRun, NearCopy, Team
from evaluation.runs import stored_answers
from evaluation.submissions import near_copy_services
from evaluation.submissions.near_copy_services import store_near_copies
from evaluation.test_sets.services import create_set, make_version
from tasks.models import TaskMember
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.submissions import answered, scored, submission_of, url_of

pytestmark = pytest.mark.django_db
LABELS = ["entailment", "neutral", "contradiction"]
SIZE = 60
GOLD = [LABELS[number % 3] for number in range(SIZE)]


@pytest.fixture
def task():
    return RoundFactory(task=TaskFactory(code="nli")).task


def make_set(task, name="dev", **told):
    one = create_set(task=task, name=name, actor=None, **({"answers_public": True} | told))
    rows = [
        SetRow(f"{name}{number}", {"premise": f"Premise {number}.", "hypothesis": "So."}, (gold,))
        for number, gold in enumerate(GOLD)
    ]
    return make_version(one, rows, None)


@pytest.fixture
def version(task):
    return make_set(task)


def wrong_at(*places, answers=GOLD):
    """The answers with those at the places turned to the next label."""
    said = list(answers)
    for place in places:
        said[place] = LABELS[(LABELS.index(said[place]) + 1) % 3]
    return said


MINE = wrong_at(*range(20))
COPY = wrong_at(59, answers=MINE)
ANOTHER = wrong_at(*range(25, 45))


def model(task, version, answers, owner=None, **columns):
    """A model with a run that has just ended."""
    columns = {"state": "done", "is_published": True} | columns
    made = submission_of(task, owner or UserFactory(), **columns)
    run = scored(made, version)
    answered(run, *answers)
    return run


def test_a_near_copy_is_found_and_another_model_is_not(task, version):
    first, other = model(task, version, MINE), model(task, version, ANOTHER)
    assert [store_near_copies(run) for run in (first, other)] == [0, 0]
    copy = model(task, version, COPY)
    assert store_near_copies(copy) == store_near_copies(copy) == 1
    found = NearCopy.objects.get()
    assert (found.run, found.other) == (copy, first)
    assert (found.n, found.equal, found.both_wrong, found.equal_wrong) == (60, 59, 20, 20)
    assert found.expected == pytest.approx(60 * (0.66 * 0.66 + 0.34 * 0.34), abs=2)


def test_what_is_not_compared(task, version, monkeypatch):
    owner, team = UserFactory(), Team.objects.create(name="Lab")
    model(task, version, MINE, owner)
    model(task, version, MINE, team=team)
    model(task, version, MINE, withdrawn_at="2026-01-01T00:00Z")
    mine = model(task, version, MINE, owner, team=team)
    suite = model(task, version, MINE)
    EvaluationRun.objects.filter(pk=suite.pk).update(suite="robustness")
    failed = model(task, version, MINE)
    EvaluationRun.objects.filter(pk=failed.pk).update(outcome="timeout")
    for run in (suite, failed):
        run.refresh_from_db()
    assert [store_near_copies(run) for run in (mine, suite, failed)] == [0, 0, 0]
    other = model(task, version, MINE)
    monkeypatch.setattr(near_copy_services, "MAX_ANSWERS", 2 * SIZE)
    assert store_near_copies(other) == 2  # the newest
    monkeypatch.setattr(near_copy_services, "MAX_EXAMPLES", SIZE - 1)
    assert store_near_copies(model(task, version, MINE)) == 0


def test_files_that_are_gone_or_damaged_are_passed_by(task, version):
    gone, kept = model(task, version, MINE), model(task, version, MINE)
    gone.predictions.storage.delete(gone.predictions.name)
    assert store_near_copies(model(task, version, COPY)) == 1
    assert NearCopy.objects.get().other == kept
    short = model(task, version, MINE[:-1])
    assert store_near_copies(short) == 0
    version.gold.storage.delete(version.gold.name)
    assert store_near_copies(model(task, version, COPY)) == 0


def test_free_answers_are_compared_by_their_words(version, task, monkeypatch):
    """As of a task without labels: what is right is equal, and case does not make errors differ."""
    monkeypatch.setattr(stored_answers, "get_labels", lambda config: None)
    pairs = zip(MINE, GOLD, strict=True)
    model(task, version, [said if said == gold else f"The {said.upper()}." for said, gold in pairs])
    assert store_near_copies(model(task, version, MINE)) == 1


@pytest.fixture
def pair(task, version):
    first = model(task, version, MINE)
    copy = model(task, version, COPY, UserFactory(email="copy@example.com"), is_published=False)
    store_near_copies(copy)
    return copy.submission, first.submission


def doors(submission):
    return url_of(submission), f"/api/v1/models/{submission.pk}/near-copies/"


def told(client, submission):
    """Whether the page and the API say it."""
    page, api = (client.get(door) for door in doors(submission))
    said = api.json() if api.status_code == 200 else []
    assert bool(page.context and page.context.get("near_copies")) == bool(said)
    return [one["model"] for one in said]


def test_its_submitter_and_the_tasks_owners_are_told(pair, task, client):
    copy, first = pair
    editor = UserFactory()
    TaskMember.objects.create(task=task, user=editor, role="editor")
    for user in (copy.owner, editor):
        client.force_login(user)
        assert told(client, copy) == [str(first.pk)]
        assert told(client, first) == []
    assert len(client.get("/t/nli/models/").context["near_copies"]) == 1
    type(copy).objects.filter(pk=copy.pk).update(is_published=True)
    client.force_login(first.owner)
    assert told(client, copy) == []
    client.logout()
    assert client.get(url_of(copy)).context["near_copies"] == []
    assert "near_copies" not in client.get("/t/nli/models/").context


def test_nothing_is_said_of_models_that_are_not_published(pair, client):
    copy, first = pair
    type(first).objects.filter(pk=first.pk).update(is_published=False)
    client.force_login(copy.owner)
    assert told(client, copy) == []


def test_an_anonymous_model_keeps_its_name(pair, client):
    copy, first = pair
    type(first).objects.filter(pk=first.pk).update(anonymous_until="2999-01-01", name="Secret")
    client.force_login(copy.owner)
    page, api = (client.get(door) for door in doors(copy))
    assert len(api.json()) == 1
    assert "Secret" not in api.text
    assert "Secret" not in page.text


def test_a_sealed_set_is_for_the_tasks_editors_alone(task, client):
    sealed = make_set(task, "test", answers_public=False)
    model(task, sealed, MINE)
    copy = model(task, sealed, COPY)
    assert store_near_copies(copy) == 1
    client.force_login(copy.submission.owner)
    assert told(client, copy.submission) == []
    TaskMember.objects.create(task=task, user=copy.submission.owner, role="editor")
    assert len(told(client, copy.submission)) == 1


def test_query_counts_do_not_grow(pair, task, version, client, django_assert_max_num_queries):
    copy, _ = pair
    TaskMember.objects.create(task=task, user=copy.owner, role="editor")
    client.force_login(copy.owner)
    counts = []
    for _round in range(2):
        for address in (*doors(copy), "/t/nli/models/"):
            client.get(address)
            with django_assert_max_num_queries(100) as queries:
                assert client.get(address).status_code == 200
            counts.append(len(queries))
        for _number in range(3):
            NearCopy.objects.create(
                run=copy.runs.get(), other=model(task, version, MINE), n=60, equal=59,
                expected=30, both_wrong=20, equal_wrong=20,
            )  # fmt: skip
    assert counts[:2] == counts[3:5]
