"""The leaderboard through the API: weights, who sees which model, compare, snapshots, forks."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from leaderboard.models import Snapshot, Weights
from tasks.models import TaskMember
from tests.support.boards import fill_board, measured
from tests.support.compared_models import answered, rows_of
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import RoundFactory, TaskFactory
from tests.support.query_counts import check

URL = "/api/v1/tasks/nli/leaderboard/"


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def task(db):
    cache.clear()
    return TaskFactory(code="nli", name="Natural language inference")


@pytest.fixture
def models(task):
    """Model 0 to 2 on two sets: each better and more costly than the one before."""
    return fill_board(task)


@pytest.fixture
def owners(api_of, bob, task):
    """A client of the task's owner."""
    TaskMember.objects.create(task=task, user=bob, role="owner")
    return api_of(bob)


def names(answer):
    assert answer.status_code == 200, answer.text
    return [row["model"] for row in answer.json()["rows"]]


def error(answer):
    return answer.json()["error"]


def test_the_board_is_that_of_the_page(anybody, client, models):
    board = anybody.get(URL).json()
    assert [row["rank"] for row in board["rows"]] == ["1", "2", "3"]
    assert [row["model"] for row in board["rows"]] == ["Model 2", "Model 1", "Model 0"]
    assert board["weights"]["metrics"]["accuracy"] == 4
    page = client.get("/t/nli/leaderboard/?format=json").json()
    assert board == {**page, "rows": [{**row, "is_published": True} for row in page["rows"]]}


def test_weights_stand_in_the_query(anybody, models):
    by_speed = {"mode": "robust"} | {
        f"w_{name}": 0 for name in ("accuracy", "memory", "fairness", "robustness")
    }
    assert names(anybody.get(URL, by_speed)) == ["Model 0", "Model 1", "Model 2"]
    found = anybody.get(URL, {"mode": "classic", "d_round-2": 0}).json()
    assert (found["mode"], found["weights"]["sets"]) == ("classic", {"round-1": 5, "round-2": 0})


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (
            {f"w_{n}": 0 for n in ("accuracy", "throughput", "memory", "fairness", "robustness")},
            "w_accuracy",
        ),
        ({"d_round-1": 0, "d_round-2": 0}, "d_round-1"),
        ({"w_memory": 9}, "w_memory"),
        ({"w_memory": "nan"}, "w_memory"),
    ],
)
def test_weights_without_a_sense_are_refused_as_on_the_page(anybody, models, query, field):
    answer = anybody.get(URL, query)
    assert answer.status_code == 422
    assert error(answer)["fields"] == {field: [error(answer)["message"]]}


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ({"w_acuracy": 5}, "w_acuracy", "accuracy, "),
        ({"d_round-9": 5}, "d_round-9", "round-1, round-2"),
        ({"mode": "clasic"}, "mode", "robust, classic"),
        ({"mine": "yes"}, "mine", "true"),
        ({"weights": "accuracy"}, "weights", "mode"),
    ],
)
def test_what_nobody_reads_is_refused_by_name(anybody, models, query, field, words):
    answer = anybody.get(URL, query)
    assert answer.status_code == 422
    ((name, (message,)),) = error(answer)["fields"].items()
    assert name == field
    assert words in message


def test_it_has_an_etag_that_changes_with_the_board(anybody, task, models):
    first = anybody.get(URL)
    again = {"HTTP_IF_NONE_MATCH": first["ETag"]}
    assert anybody.get(URL, **again).status_code == 304
    assert anybody.get(URL, {"w_memory": 3}, **again).status_code == 200
    more = fill_board(task, models=4, first=3)
    changed = anybody.get(URL, **again)
    assert len(changed.json()["rows"]) == 4
    more[0].name = "Renamed"
    more[0].save(update_fields=["name"])
    assert "Renamed" in names(anybody.get(URL, HTTP_IF_NONE_MATCH=changed["ETag"]))


def test_who_sees_which_models(api, owners, anybody, alice, task):
    """As on the page: private ones are for their owner and the task's, who ask for them."""
    version = set_version(task)
    until = timezone.now().date() + timedelta(days=9)
    for name, fields in {
        "Public": {"is_published": True},
        "Secret": {"is_published": True, "anonymous_until": until},
        "Private": {},
        "Withdrawn": {"is_published": True, "withdrawn_at": timezone.now()},
    }.items():
        measured(accepted_model(task, alice, name=name, **fields), version, 0.7)
    measured(accepted_model(task, name="Other's", owner=None), version, 0.6)
    set_version(task, "secret-set", access="hidden")
    for client in (api, owners, anybody):
        text = client.get(URL).text
        assert set(names(client.get(URL))) == {"Public", "Anonymous 1"}
        assert "secret-set" not in text
        assert alice.email not in text
    mine = {"mine": "1"}
    assert set(names(anybody.get(URL, mine))) == {"Public", "Anonymous 1"}
    assert set(names(api.get(URL, mine))) == {"Public", "Secret", "Private"}
    everything = {"Public", "Secret", "Private", "Other's"}
    assert set(names(owners.get(URL, mine))) == everything
    marks = {row["model"]: row["is_published"] for row in api.get(URL, mine).json()["rows"]}
    assert marks == {"Public": True, "Secret": True, "Private": False}
    assert api.get(URL, mine)["ETag"] != owners.get(URL, mine)["ETag"]


ADDRESSES = ("", "compare/", "rounds/", "forks/", "snapshots/", "snapshots/1/")


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_hidden_task_has_none_of_it(anybody, api, task, models, address):
    task.is_visible = False
    task.save(update_fields=["is_visible"])
    assert anybody.get(URL + address).status_code == 404
    assert api.get(URL + address).status_code == 404
    assert anybody.get("/api/v1/tasks/nothing/leaderboard/" + address).status_code == 404


@pytest.fixture
def pair(task):
    """Ada is right but on every eighth example, Ben only in the first half."""
    version = set_version(task, "round-1", rows=rows_of(240), may_leave=True)
    ada, ben = (accepted_model(task, name=name, is_published=True) for name in ("Ada", "Ben"))
    answered(ada, version, lambda n: n % 8)
    answered(ben, version, lambda n: n < 120)
    return ada, ben


def test_two_models_are_compared(anybody, pair):
    query = {"a": pair[0].pk, "b": pair[1].pk}
    answer = anybody.get(f"{URL}compare/", query)
    found = answer.json()
    row = found["rows"][0]
    assert (row["set"], row["metric"], row["better"]) == ("round-1", "accuracy", "a")
    assert (row["a"]["value"], row["b"]["value"]) == (87.5, 50)
    assert row["difference"]["value"] == pytest.approx(37.5)
    assert row["p_uncorrected"] <= row["p"] < 0.05
    assert row["correction"] == "holm"
    assert {one["slice"] for one in found["slices"]} == {"tag=early", "tag=late"}
    assert found["readable"] == ["round-1"]
    assert found["examples"] == []
    again = anybody.get(f"{URL}compare/", query, HTTP_IF_NONE_MATCH=answer["ETag"])
    assert again.status_code == 304


def test_what_is_right_is_for_editors(anybody, owners, pair):
    query = {"a": pair[0].pk, "b": pair[1].pk, "set": "round-1"}
    public, inside = (one.get(f"{URL}compare/", query).json() for one in (anybody, owners))
    assert len(public["examples"]) == 20
    assert public["next_page"] == 2
    assert all(one["gold"] == [] for one in public["examples"])
    assert {one["a"] for one in inside["examples"]} >= set(inside["examples"][0]["gold"])
    assert anybody.get(f"{URL}compare/", {**query, "page": 99}).json()["examples"] == []


@pytest.mark.parametrize(
    ("a", "b", "status", "field"),
    [("", "", 422, "a"), ("0", "", 422, "b"), ("0", "x", 404, "b"), ("0", "0", 422, "b")],
)
def test_two_models_must_be_named(anybody, pair, a, b, status, field):
    query = {name: str(pair[0].pk) if text == "0" else text for name, text in (("a", a), ("b", b))}
    answer = anybody.get(f"{URL}compare/", query)
    assert answer.status_code == status
    assert set(error(answer)["fields"]) == {field}


def test_snapshots_are_taken_by_editors_and_stay(api, owners, anybody, task, models):
    told = {"title": "For the paper", "description": "Before round 3."}
    assert api.post(f"{URL}snapshots/", told).status_code == 404
    answer = owners.post(f"{URL}snapshots/", told)
    assert answer.status_code == 201
    assert answer.json()["number"] == 1
    fill_board(task, models=4, first=3)
    assert owners.post(f"{URL}snapshots/", {}).status_code == 201
    listed = anybody.get(f"{URL}snapshots/").json()["results"]
    assert [(one["number"], one["title"]) for one in listed] == [(2, ""), (1, "For the paper")]
    first = anybody.get(f"{URL}snapshots/1/")
    assert len(first.json()["table"]["rows"]) == 3
    assert first.json()["sha256"] == Snapshot.objects.get(number=1).sha256
    assert "/t/nli/leaderboard/snapshots/1/" in first.json()["bibtex"]
    second = anybody.get(f"{URL}snapshots/2/").json()
    assert second["changes"][0].startswith("Model 3")
    again = anybody.get(f"{URL}snapshots/1/", HTTP_IF_NONE_MATCH=first["ETag"])
    assert again.status_code == 304
    assert anybody.get(f"{URL}snapshots/{10**30}/").status_code == 404


def test_a_snapshot_of_nothing_is_refused(owners, task):
    answer = owners.post(f"{URL}snapshots/", {})
    assert (answer.status_code, error(answer)["code"]) == (409, "refused")
    assert owners.get(f"{URL}snapshots/").json()["results"] == []


def test_rates_are_frozen_anew_by_editors(api, owners, anybody, task, models):
    assert anybody.post(f"{URL}refreeze/").status_code == 401
    assert api.post(f"{URL}refreeze/").status_code == 404
    assert owners.post(f"{URL}refreeze/").json()["number"] == 1
    for model in models:
        model.is_published = False
        model.save(update_fields=["is_published"])
    assert owners.post(f"{URL}refreeze/").status_code == 409


def test_weights_are_kept_replaced_and_removed(api, api_of, owners, anybody, alice, task, models):
    told = {"name": "speed-first", "metrics": {"throughput": 8, "accuracy": 1}}
    made = api.post(f"{URL}forks/", told)
    assert made.status_code == 201
    assert made.json()["metrics"]["throughput"] == 8
    assert made.json()["metrics"]["memory"] == 1  # the owner's
    assert made.json()["by"] == alice.annotator.pseudonym
    assert anybody.get(URL, {"fork": "speed-first"}).json()["weights"]["metrics"]["accuracy"] == 1
    assert api.post(f"{URL}forks/", {**told, "description": "Fast."}).status_code == 201
    listed = anybody.get(f"{URL}forks/").json()["results"]
    assert [(one["name"], one["description"]) for one in listed] == [("speed-first", "Fast.")]
    taken = owners.post(f"{URL}forks/", told)
    assert (taken.status_code, set(error(taken)["fields"])) == (409, {"name"})
    stranger = api_of(Weights.objects.get().owner.__class__.objects.create_user("x@example.com"))
    assert stranger.delete(f"{URL}forks/speed-first/").status_code == 404
    assert owners.delete(f"{URL}forks/speed-first/").status_code == 204
    assert api.delete(f"{URL}forks/speed-first/").status_code == 404
    assert anybody.get(URL, {"fork": "speed-first"}).status_code == 404


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"name": "Not A Name"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "ok", "metrics": {"speed": 1}}, "metrics"),
        ({"name": "ok", "sets": {"round-9": 1}}, "sets"),
        ({"name": "ok", "metrics": {"accuracy": 9}}, "metrics.accuracy"),
        ({"name": "ok", "metrics": {"accuracy": "nan"}}, "metrics.accuracy"),
        ({"name": "ok", "sets": {"round-1": 0, "round-2": 0}}, "sets"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "ok", "weights": {"accuracy": 4}}, "weights"),
    ],
)
def test_weights_that_cannot_be_kept(api, models, told, field):
    answer = api.post(f"{URL}forks/", told)
    assert answer.status_code in (409, 422)
    assert set(error(answer)["fields"]) == {field}
    assert not Weights.objects.exists()


def test_writes_need_a_token_that_may(anybody, api_of, owners, bob, models):
    reader = api_of(bob, "read")
    for address in ("forks/", "snapshots/"):
        assert anybody.post(URL + address, {}).status_code == 401
        assert reader.post(URL + address, {}).status_code == 403
    assert reader.delete(f"{URL}forks/x/").status_code == 403


def test_models_and_rounds(anybody, api, task):
    from tests.support.api_errors import round_set

    first, second = round_set(task, 1), round_set(task, 2)
    RoundFactory(task=task, number=3, state="draft")
    model = accepted_model(task, name="Ada", is_published=True)
    measured(model, first, 0.8)
    measured(model, second, 0.6)
    answer = anybody.get(f"{URL}rounds/")
    found = answer.json()
    assert [one["round"] for one in found["rounds"]] == [1, 2]
    assert [cell["value"] for cell in found["models"][0]["rounds"]] == [80, 60]
    assert found["models"][0]["newest_minus_oldest"]["value"] == pytest.approx(-20)
    assert found["is_counting"] is False
    assert anybody.get(f"{URL}rounds/", HTTP_IF_NONE_MATCH=answer["ETag"]).status_code == 304


def test_people_are_told_to_those_who_are_in_the_ranking(api, anybody, alice, task):
    assert anybody.get(f"{URL}people/").status_code == 401
    assert api.get(f"{URL}people/").json() == {
        "in_ranking": False,
        "team": {"passages": 0, "goal": 10},
        "places": [],
    }
    alice.annotator.source = "prolific"
    alice.annotator.save(update_fields=["source"])
    assert api.get(f"{URL}people/").status_code == 404


def test_query_counts(anybody, task, pair, django_assert_num_queries):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    addresses = {
        "API leaderboard": URL,
        "API compare": f"{URL}compare/?a={pair[0].pk}&b={pair[1].pk}",
        "API models and rounds": f"{URL}rounds/",
        "API results": f"/api/v1/models/{pair[0].pk}/results/",
    }

    def count(address):
        anybody.get(address)
        with CaptureQueriesContext(connection) as queries:
            assert anybody.get(address).status_code == 200
        return len(queries)

    few = {name: count(address) for name, address in addresses.items()}
    fill_board(task, models=9, sets=("round-1", "round-2", "round-3"))
    assert {name: count(address) for name, address in addresses.items()} == few
    for name, number in few.items():
        check(name, number)
