"""Every model against every round: values, people, gaps, what was forgotten, who sees what."""

import csv
import io
import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from evaluation.models import EvaluationRun
from leaderboard.board.cells import Cell
from leaderboard.rounds import standing
from leaderboard.rounds import views as rounds_views
from leaderboard.rounds.matrix import subtract_cells
from leaderboard.rounds.progress import Progress
from tasks.models import TaskMember
from tests.support.boards import fill_board, measured
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.query_counts import check, count
from validation.rates.rates import Rate
from validation.statistics.cache import CachedResult

URL = "/t/nli/leaderboard/rounds/"
PEOPLE = {1: (0.9, 0.3), 2: (0.92, 0.1), 3: (0.95, 0.04)}
"""By round: human accuracy and vMER."""


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def task(db):
    """Three rounds, of which two have sets."""
    task = TaskFactory(code="nli", name="Natural language inference")
    for number in PEOPLE:
        round = RoundFactory(task=task, number=number, state="closed")
        if number < 3:
            set_version(task, f"round-{number}", size=40, round=round)
    return task


@pytest.fixture
def people(monkeypatch):
    """What people did, as it would be counted."""

    def kept(rounds):
        now = timezone.now()
        return {
            round.pk: CachedResult(numbers(*PEOPLE[round.number]), now, now + timedelta(hours=1))
            for round in rounds
        }

    def numbers(people, vmer):
        def rate(share):
            return Rate(share, share - 0.02, share + 0.02, 500, "wilson")

        return {
            "human_accuracy": rate(people),
            "human_model_gap": rate(0.25),
            "vmer": rate(vmer),
        }

    monkeypatch.setattr(rounds_views, "get_all_numbers", kept)


def rows(page):
    """The cells of each line of the models' table, without tags."""
    table = page.split('<table class="rounds">')[1].split("</table>")[0]
    found = re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.S)
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S) for row in found]
    return [[" ".join(re.sub("<[^>]+>", " ", cell).split()) for cell in row] for row in cells]


def test_every_model_stands_beside_people_on_every_round(client, task, people):
    models = fill_board(task)
    late = accepted_model(task, name="Late", is_published=True)
    measured(late, task.evaluation_sets.get(name="round-2").versions.get(), 0.7)
    EvaluationRun.objects.filter(
        submission=models[2], version__evaluation_set__name="round-1"
    ).update(in_the_loop=True)
    page = client.get(URL).text
    head, persons, *lines = rows(page)
    assert head[2:5] == ["Round 1 round-1 v1", "Round 2 round-2 v1", "Round 3"]
    assert page.count('class="figure lines') == 2
    assert page.count('class="sparkline"') == 3  # Late was run on one round
    assert persons[1:5] == [
        "People", "90.0 (88.0–92.0)", "92.0 (90.0–94.0)", "95.0 (93.0–97.0)",
    ]  # fmt: skip
    assert [line[1] for line in lines] == ["Model 2", "Model 1", "Model 0", "Late"]
    assert lines[0][2].startswith("66.7 (66.2–67.2) ")  # and it is in the loop
    assert not any(map(str.isdigit, lines[0][4]))  # no test set yet
    assert lines[3][2:4] == ["not run", "70.0 (69.5–70.5)"]
    assert lines[3][5] == "–"


def test_a_chart_is_a_file_too(client, task, people):
    fill_board(task)
    page = client.get(URL).text
    figures = client.get(URL).context["figures"]
    assert list(figures) == ["people-and-models", "catch-rate"]
    for name, figure in figures.items():
        assert f'id="chart-{name}"' in page
        for format, begin in (("svg", b"<svg"), ("png", b"\x89PNG")):
            address = f"{URL}chart/{name}.{format}"
            assert address in page
            file = client.get(address)
            assert file.content.startswith(begin)
            assert f'filename="nli-{name}.{format}"' in file["Content-Disposition"]
        svg = client.get(f"{URL}chart/{name}.svg").text
        assert figure.title in svg
        assert "http://testserver/t/nli/leaderboard/rounds/" in svg
    assert client.get("/t/nli/leaderboard/chart/trend.svg").status_code == 200
    assert client.get(f"{URL}chart/catch-rate.exe").status_code == 404
    assert client.get(f"{URL}chart/other.svg").status_code == 404


@pytest.mark.parametrize("is_written_against", [True, False])
def test_a_cell_says_whether_it_was_written_against_the_model(
    client, task, people, is_written_against
):
    models = fill_board(task)
    EvaluationRun.objects.filter(
        submission=models[2], version__evaluation_set__name="round-1"
    ).update(in_the_loop=is_written_against)
    page = client.get(URL).text
    assert len(re.findall(r'<td class="[^"]*framed', page)) == is_written_against
    assert page.count('<span class="framed sign-box"') == is_written_against


def test_a_models_page_has_its_line_beside_people(client, task, people, monkeypatch):
    monkeypatch.setattr(standing, "get_all_numbers", rounds_views.get_all_numbers)
    model = fill_board(task)[2]
    type(model).objects.filter(pk=model.pk).update(name="People")
    page = client.get(f"/m/{model.pk}/").text
    figure = page.split('id="by-round"')[1].split("</figure>")[0]
    assert figure.count(">People<") >= 2  # people, and a model of this name
    assert 'class="people dot"' in figure
    assert 'class="chosen dot"' in figure
    model.runs.all().delete()
    assert 'id="by-round"' not in client.get(f"/m/{model.pk}/").text


def test_the_gap_between_people_and_the_best_model(client, task, people):
    fill_board(task)
    told = client.get(URL, {"format": "json"}).json()
    gap = told["rounds"][0]["people_minus_best"]
    assert (told["rounds"][0]["best"], round(gap["value"], 1)) == ("Model 2", 23.3)
    assert gap["low"] == pytest.approx(23.333 - (2**2 + 0.5**2) ** 0.5, abs=0.01)
    assert told["rounds"][2]["people_minus_best"]["value"] is None
    assert told["rounds"][2]["people_minus_loop"]["value"] == pytest.approx(25)


def test_a_round_without_a_number_of_its_own_has_its_set_too(client, task, people, monkeypatch):
    monkeypatch.setitem(PEOPLE, 0, PEOPLE[1])  # 0: imported, where the source has no rounds
    task.rounds.filter(number=1).update(number=0)
    fill_board(task)
    told = client.get(URL, {"format": "json"}).json()
    assert [(one["round"], one["set"]) for one in told["rounds"]] == [
        (0, "round-1 v1"), (2, "round-2 v1"), (3, None),
    ]  # fmt: skip


def test_people_are_not_held_against_other_metrics(client, task, people):
    swapped = {"accuracy": "macro_f1", "macro_f1": "accuracy"}
    task.config_text = re.sub("|".join(swapped), lambda m: swapped[m[0]], task.config_text)
    task.save()
    fill_board(task)
    told = client.get(URL, {"format": "json"}).json()
    assert told["metric"] == "macro_f1"
    assert told["rounds"][0]["people_minus_best"]["value"] is None


@pytest.mark.parametrize(
    ("oldest", "newest", "words"),
    [
        (0.5, 0.7, "20.0 points better"),
        (0.7, 0.5, "20.0 points worse"),
        (0.7, 0.701, "no clear difference"),
    ],
)
def test_what_a_model_learned_and_forgot(client, task, people, oldest, newest, words):
    model = accepted_model(task, name="Learner", is_published=True)
    for name, accuracy in (("round-1", oldest), ("round-2", newest)):
        measured(model, task.evaluation_sets.get(name=name).versions.get(), accuracy)
    assert rows(client.get(URL).text)[2][5].startswith(words)


@pytest.mark.parametrize(
    ("vmers", "noise", "progress"),
    [
        ((0.3, 0.2, 0.1), 0.05, Progress.BETTER),
        ((0.3, 0.2, 0.2), 0.05, Progress.STALLED),
        ((0.3, 0.2, 0.4), 0.05, Progress.WORSE),
        ((0.3, 0.2, 0.1), 0.12, Progress.NOISE),
    ],
)
def test_whether_progress_has_stalled(client, task, people, monkeypatch, vmers, noise, progress):
    for number, vmer in enumerate(vmers, 1):
        monkeypatch.setitem(PEOPLE, number, (1 - noise, vmer))
    last = client.get(URL).context["found"].columns[-1]
    assert (last.number, last.previous_number, last.step.progress) == (3, 2, progress)


def test_a_round_is_held_against_its_parent(client, task, people, monkeypatch):
    monkeypatch.setitem(PEOPLE, 1, (0.98, 0.06))
    monkeypatch.setitem(PEOPLE, 3, (0.99, 0.2))
    task.rounds.get(number=3).parents.add(task.rounds.get(number=1))
    last = client.get(URL).context["found"].columns[-1]
    assert (last.number, last.previous_number, last.step.progress) == (3, 1, Progress.WORSE)


def test_without_votes_nothing_is_made_up(client, task):
    fill_board(task)
    page = client.get(URL).text
    assert rows(page)[1][2:5] == ["– unknown"] * 3
    assert "people dot" not in page
    assert "bracket" not in page
    assert subtract_cells(Cell(None), Cell(1.0, 0.5, 1.5)) == Cell(None)


def test_without_rounds_the_page_says_so(client, db):
    TaskFactory(code="nli")
    page = client.get(URL)
    assert page.status_code == 200
    assert page.context["found"].columns == ()


def test_numbers_that_are_still_counted_are_awaited(client, task, monkeypatch):
    monkeypatch.setattr(rounds_views, "get_all_numbers", lambda rounds: {})
    assert 'id="counting"' in client.get(URL).text
    reply = client.get(URL, {"format": "csv"})
    assert (reply.status_code, reply["Retry-After"]) == (503, "60")


def test_the_table_is_a_file_too(client, task, people):
    fill_board(task, models=1)
    reply = client.get(URL, {"format": "csv"})
    assert 'filename="nli-rounds.csv"' in reply["Content-Disposition"]
    found = list(csv.DictReader(io.StringIO(reply.text)))
    people_3 = next(row for row in found if (row["kind"], row["round"]) == ("people", "3"))
    assert float(people_3["value"]) == pytest.approx(95)
    model = [row for row in found if row["kind"] == "model"]
    assert [(row["name"], row["round"], row["value"][:4]) for row in model] == [
        ("Model 0", "1", "40.0"), ("Model 0", "2", "40.0"), ("Model 0", "3", ""),
    ]  # fmt: skip
    wrong = client.get(URL, {"format": "xls"})
    assert wrong.status_code == 400


ROLES = {
    "nobody": {"Anonymous 1"},
    "stranger": {"Anonymous 1"},
    "author": {"Draft model", "Secret name"},
    "editor": {"Draft model", "Secret name"},
    "superuser": {"Draft model", "Secret name"},
}


@pytest.mark.parametrize("who", ROLES)
def test_who_sees_which_models(client, task, people, who):
    author = UserFactory()
    draft = accepted_model(task, owner=author, name="Draft model")
    tomorrow = timezone.now().date() + timedelta(days=1)
    build_hidden_name = accepted_model(
        task, owner=author, name="Secret name", is_published=True, anonymous_until=tomorrow
    )
    sealed = set_version(task, "sealed", size=4, access="hidden", round=task.rounds.get(number=3))
    for model in (draft, build_hidden_name):
        measured(model, task.evaluation_sets.get(name="round-1").versions.get(), 0.5)
        measured(model, sealed, 0.875)
    user = author if who == "author" else UserFactory(is_superuser=who == "superuser")
    if who == "editor":
        TaskMember.objects.create(task=task, user=user, role="editor")
    if who != "nobody":
        client.force_login(user)
    names = {"Draft model", "Secret name", "Anonymous 1"}
    page = client.get(URL, {"mine": "1"}).text
    assert {name for name in names if name in page} == ROLES[who]
    for query in ({}, {"format": "csv", "mine": "1"}, {"format": "json", "mine": "1"}):
        public = client.get(URL, query).text
        assert {name for name in names if name in public} == {"Anonymous 1"}
        assert "87.5" not in public
        assert "sealed" not in public


def test_a_task_that_is_not_public_has_no_such_page(client, task):
    task.is_visible = False
    task.save()
    assert client.get(URL).status_code == 404


def test_many_models_have_several_pages(client, task, people, monkeypatch):
    monkeypatch.setattr(rounds_views, "PAGE_ROWS", 2)
    fill_board(task)
    page = client.get(URL, {"page": "2"}).text
    assert [row[:2] for row in rows(page)[2:]] == [["3", "Model 0"]]
    assert "Page 2 of 2" in page


def test_query_count_of_models_and_rounds(as_alice, task):
    fill_board(task, models=1)

    def ask():
        cache.clear()
        return count(as_alice, URL)

    few = ask()
    fill_board(task, models=9, first=1)
    for number in range(4, 9):
        RoundFactory(task=task, number=number, state="closed")
    assert ask() == few
    check("models and rounds", few)


def test_without_test_sets_and_numbers_one_line_stands_for_the_tables(client, nli):
    page = client.get("/t/nli/leaderboard/rounds/").text
    assert 'id="no-test-sets"' in page
    assert "<table" not in page
