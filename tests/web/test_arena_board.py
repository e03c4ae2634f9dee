"""The board of an arena: its page, files and API, who may see it, and what an arena has not."""

import csv
import hashlib
import re
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.exceptions import NON_FIELD_ERRORS
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from leaderboard.arena import board
from tasks.models import Task
from tests.support.arenas import compare, make_arena
from tests.support.factories import UserFactory
from tests.support.query_counts import check

URL, API = "/t/duel/arena/", "/api/v1/tasks/duel/arena/"
ROWS = [
    "w1 a b left",
    "w1 b c tie",
    "w2 c a right",
    "w2 a b both_bad",
    "w3 b a left",
    "w3 b c right",
]
DOORS = [URL, f"{URL}?format=csv", f"{URL}?format=json", f"{URL}?format=latex", API]
CODES = ["duel", "empty"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def duel():
    task = make_arena("duel")
    compare(task, *ROWS)
    return task


def ranking(text):
    return re.findall(r'<th scope="row" class="name" title="[^"]+"><bdi>([^<]+)</bdi></th>', text)


def test_the_models_stand_by_rank_then_by_strength(client, duel):
    response = client.get(URL)
    models = response.context["kept"].numbers["models"]
    names = [one["name"] for one in models]
    assert set(names) == {"a", "b", "c"}
    assert ranking(response.text) == names
    numbered = [f"{n} {name}" for n, name in enumerate(names, 1)]
    assert (
        re.findall(r'<th scope="row" title="[^"]+"><span class="two-lines">([^<]+)<', response.text)
        == numbered
    )
    assert [m["strength"] for m in models] == sorted((m["strength"] for m in models), reverse=True)
    assert response.text.count('class="row-plot"') == 3


def test_the_tasks_page_has_the_best_models_in_the_boards_order(client, duel):
    before = ranking(client.get("/t/duel/").text)
    cache.clear()
    names = ranking(client.get(URL).text)
    assert before == names  # also where nobody has opened the board yet
    page = client.get("/t/duel/")
    assert ranking(page.text) == names
    assert page.text.count('class="row-plot"') == len(names)
    assert "export-menu" not in page.text  # the files are the board's
    size = page.text.partition('id="arena-size"')[2]
    assert re.findall(r"<strong>(\d+)</strong>", size)[:3] == ["6", "3", "3"]


def test_the_tasks_page_shows_the_first_models_of_many(client, duel, monkeypatch):
    monkeypatch.setattr("dynabench.task_pages.MAX_ARENA_MODELS", 2)
    names = ranking(client.get(URL).text)
    assert ranking(client.get("/t/duel/").text) == names[:2]


def test_the_tasks_page_needs_as_many_queries_for_many_models(client, duel):
    counts = []
    for _ in range(2):
        cache.clear()
        client.get(URL)
        with CaptureQueriesContext(connection) as queries:
            client.get("/t/duel/")
        counts.append(len(queries))
        compare(duel, *(f"v{n} m{n} a left" for n in range(9)))
    assert counts[0] == counts[1]


def test_the_list_of_boards_names_the_best_model_once_the_arena_is_ranked(client, duel):
    cache.clear()
    (board,) = client.get("/leaderboards/").context["filled_boards"]
    assert board.arena_leaders == []
    names = ranking(client.get(URL).text)
    (board,) = client.get("/leaderboards/").context["filled_boards"]
    assert board.arena_leaders[0] == names[0]


def test_the_matrix_holds_the_shares_of_wins(client, duel):
    table = client.get(API).json()
    at = {one["name"]: n for n, one in enumerate(table["models"])}
    wins = table["wins"]
    assert wins[at["a"]][at["b"]] == pytest.approx(0.5)  # one win, one loss, one tie
    assert wins[at["a"]][at["c"]] == 1
    assert wins[at["c"]][at["b"]] == pytest.approx(0.75)
    assert wins[at["a"]][at["a"]] is None


def test_shares_of_few_battles_have_no_colour(client, duel):
    page = client.get(URL).text
    assert 'class="thin"' in page
    assert "win-2" not in page
    compare(duel, *(f"v{n} a c left" for n in range(12)))
    cache.clear()
    assert page.count('class="thin"') > client.get(URL).text.count('class="thin"')
    assert 'class="win-2"' in client.get(URL).text


def test_the_ranking_is_the_file_of_a_chart(client, duel):
    page = client.get(URL)
    for format, begin in (("svg", b"<svg"), ("png", b"\x89PNG")):
        address = f"{URL}chart/strengths.{format}"
        assert address in page.text
        assert client.get(address).content.startswith(begin)
    assert page.context["finding"] in client.get(f"{URL}chart/strengths.svg").text
    make_arena("empty")
    assert client.get("/t/empty/arena/chart/strengths.svg").status_code == 404


def test_only_the_first_ten_are_in_the_matrix(client, duel):
    compare(duel, *(f"w{n} a m{n} left" for n in range(4, 14)))
    table = client.get(API).json()
    assert len(table["models"]) == 13
    assert [len(row) for row in table["wins"]] == [10] * 10


def test_files_hold_the_numbers_of_the_api(client, duel):
    told = client.get(API).json()
    assert client.get(f"{URL}?format=json").json() == told
    rows = list(csv.DictReader(StringIO(client.get(f"{URL}?format=csv").text)))
    assert [row["name"] for row in rows] == [one["name"] for one in told["models"]]
    assert float(rows[0]["strength"]) == told["models"][0]["strength"]
    latex = client.get(f"{URL}?format=latex").text
    assert latex.count(r" \\") == 4
    assert client.get(f"{URL}?format=xml").status_code == 400


def test_the_api_has_an_etag(client, duel):
    first = client.get(API)
    again = client.get(API, HTTP_IF_NONE_MATCH=first["ETag"])
    assert (first.status_code, again.status_code) == (200, 304)
    assert client.get(f"{API}?what=1").status_code == 422


def test_names_are_no_formulas_and_no_commands(client, duel):
    compare(duel, "w7 =1+1 \\input{x} left")
    assert "'=1+1" in client.get(f"{URL}?format=csv").text
    assert "\\input" not in client.get(f"{URL}?format=latex").text


def test_a_model_that_none_connects_has_no_rank(client, duel):
    compare(duel, "w1 x y left")
    response = client.get(URL)
    assert [one["name"] for one in response.context["kept"].numbers["models"]][3:] == ["x", "y"]
    assert response.text.count('class="row-plot"') == 3
    assert "x, y" in response.context["notices"][0]


def test_an_arena_without_comparisons_says_so(client):
    make_arena("duel")
    response = client.get(URL)
    assert 'id="no-models"' in response.text
    assert client.get(API).json()["models"] == []
    assert client.get(f"{URL}?format=csv").text.count("\n") == 1


@pytest.mark.parametrize("door", DOORS)
def test_a_hidden_arena_is_there_for_its_members_only(client, duel, door):
    Task.objects.update(is_visible=False)
    assert client.get(door).status_code == 404
    client.force_login(UserFactory())
    assert client.get(door).status_code == 404
    client.force_login(UserFactory(is_superuser=True))
    assert client.get(door).status_code == 200


def test_a_request_never_waits_for_a_large_arena(client, duel, monkeypatch):
    threads = []

    class Later:
        def __init__(self, target, args, daemon):
            self.run = lambda: target(*args)

        def start(self):
            threads.append(self)

    monkeypatch.setattr(board, "LARGE_COMPARISONS", 5)
    monkeypatch.setattr("core.data.adaptive_cache.Thread", Later)
    monkeypatch.setattr("core.data.adaptive_cache.connection.close", lambda: None)
    assert 'id="counting"' in client.get(URL).text
    for door in DOORS[1:]:
        response = client.get(door)
        assert (response.status_code, response["Retry-After"]) == (503, "60")
    assert len(threads) == 1
    threads[0].run()
    assert len(set(ranking(client.get(URL).text))) == 3


@pytest.mark.parametrize("url", [URL, API])
def test_query_count(client, duel, url):
    counts = []
    for _ in range(2):
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            client.get(url)
        counts.append(len(queries))
        compare(duel, *(f"v{n} m{n} a left" for n in range(20)))
    assert counts[0] == counts[1]
    check("arena" if url == URL else "API arena", counts[0])


def test_the_leaderboards_address_leads_there(client, duel):
    response = client.get("/t/duel/leaderboard/")
    assert (response.status_code, response["Location"]) == (302, URL)


@pytest.mark.parametrize(
    "path",
    [
        *("write/", "try/", "judge/", "submit/", "models/"),
        *("people/", "numbers.json", "numbers.csv", "rounds/1/data/", "leaderboard/embed/"),
        *("leaderboard/forks/", "leaderboard/compare/", "leaderboard/rounds/"),
    ],
)
def test_an_arena_has_no_such_pages(client, duel, path):
    client.force_login(UserFactory(is_superuser=True))
    assert client.get(f"/t/duel/{path}").status_code == 404


@pytest.mark.parametrize(
    "path", ["", "data/", "../../own/duel/arena/", "../../own/duel/config/", "../../own/duel/log/"]
)
def test_an_arena_has_these_pages(client, duel, path):
    client.force_login(UserFactory(is_superuser=True))
    url = f"/t/duel/{path}".replace("/t/duel/../..", "")
    assert client.get(url).status_code == 200


@pytest.mark.parametrize("url", ["/", "/leaderboards/"])
def test_lists_of_tasks_say_how_much_was_compared(client, duel, url):
    make_arena("empty")
    text = client.get(url).text
    cards = {code: text.partition(f'"/t/{code}/')[2].partition("</li>")[0] for code in CODES}
    assert "6 comparisons of 3 models" in cards["duel"]
    assert "data-empty" in cards["empty"]
    for code, card in cards.items():
        assert re.search(rf'^leaderboard/"|href="/t/{code}/(arena|leaderboard)/"', card)
        assert "No round" not in card
        assert "submit" not in card


def test_lists_of_tasks_need_no_query_for_each_arena(client, duel):
    cache.clear()
    with CaptureQueriesContext(connection) as few:
        client.get("/")
    for n in range(5):
        compare(make_arena(f"arena-{n}"), *ROWS)
    cache.clear()
    with CaptureQueriesContext(connection) as many:
        client.get("/")
    assert len(many) == len(few)


def test_the_admin_plans_no_round_of_an_arena(client, duel):
    client.force_login(UserFactory(is_superuser=True))
    form = {"task": duel.pk, "number": 1, "rule": "majority"}
    response = client.post(reverse("admin:tasks_round_add"), form)
    assert response.context["adminform"].form.has_error(NON_FIELD_ERRORS)
    assert not duel.rounds.exists()


def test_only_an_arena_has_an_arenas_board(client, nli):
    assert client.get("/t/nli/arena/").status_code == 404
    assert client.get("/api/v1/tasks/nli/arena/").status_code == 404
    assert client.get("/api/v1/tasks/nli/leaderboard/").status_code == 200


def test_the_api_of_examples_is_not_there(client, duel):
    client.force_login(UserFactory(is_superuser=True))
    for path in ("leaderboard/", "leaderboard/rounds/", "statistics/"):
        assert client.get(f"/api/v1/tasks/duel/{path}").status_code == 404, path
    for path in ("", "config/", "members/"):
        assert client.get(f"/api/v1/tasks/duel/{path}").status_code == 200, path


def test_owners_keep_the_board_in_snapshots(client, duel):
    snapshots, first = "/t/duel/leaderboard/snapshots/", "/t/duel/leaderboard/snapshots/1/"
    assert client.get(snapshots).status_code == 200
    assert client.post(snapshots, {}).status_code in (302, 404)
    client.force_login(UserFactory(is_superuser=True))
    assert client.post(snapshots, {"title": "First"}).url == first
    kept = client.get(API).json()
    compare(duel, "w9 d a left", "w9 a d left")
    cache.clear()
    client.post(snapshots, {})
    page = client.get(first)
    assert set(ranking(page.text)) >= {"a", "b", "c"}
    assert "d" not in ranking(page.text)
    assert client.get(f"{first}?format=json").json() == {
        **kept,
        "code": page.context["table"]["code"],
        "config_sha256": hashlib.sha256(duel.config_text.encode()).hexdigest(),
    }
    assert client.get(f"{first}?format=csv").text.count("\n") == 4
    assert "tabular" in client.get(f"{first}?format=latex").text
    second = client.get("/api/v1/tasks/duel/leaderboard/snapshots/2/").json()
    assert any(change.startswith("d is new") for change in second["changes"])
    assert [
        one["number"]
        for one in client.get("/api/v1/tasks/duel/leaderboard/snapshots/").json()["results"]
    ] == [2, 1]
    assert client.get("/leaderboards/").status_code == client.get("/").status_code == 200


def test_an_empty_arena_has_nothing_to_keep(client):
    make_arena("empty")
    client.force_login(UserFactory(is_superuser=True))
    assert client.post("/t/empty/leaderboard/snapshots/", {}).status_code == 422
