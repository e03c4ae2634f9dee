"""The ranking with style held constant: on the board, in its files, in the API, by the command."""

import csv
import json
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.management import call_command

from core.accounts.models import Annotator
from leaderboard.arena import board
from leaderboard.models import SIDES, Comparison
from tests.support.battles import battle_arena, fight
from tests.support.chat_server import chat_server

pytestmark = pytest.mark.django_db
URL, API = "/t/duel/arena/", "/api/v1/tasks/duel/arena/"


def report(*options):
    told = StringIO()
    call_command("arena_report", "duel", "--json", *options, stdout=told, stderr=StringIO())
    return json.loads(told.getvalue())


def test_an_arena_of_three_models_ranks_as_expected(settings):
    """60 votes by program against a server of three behaviours; the voters like what is right."""
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    behaviours = {
        "careful": lambda m: f"**{m[-1]['content']}** is 4, because 2 and 2 make 4.",
        "hasty": lambda m: "4?",
        "broken": lambda m: "Fish.",
    }
    worth = {"careful": 2, "hasty": 1, "broken": 0}
    with chat_server(behaviours) as server:
        models = {name: {"model": name} for name in behaviours}
        task = battle_arena(models=models, per_day=100)
        task.targets.update(adapter="openai_chat", url=server.url)
        for n in range(60):
            voter, _ = Annotator.objects.get_or_create(pseudonym=f"w-{n % 6}")
            pick = min if n % 10 == 0 else max  # one in ten slips
            fight(
                task,
                voter,
                lambda b, pick=pick: pick(SIDES, key=lambda s: worth[b.get_contestant(s).name]),
                prompt="2 + 2",
            )
    found = report()
    assert [one["name"] for one in found["models"]] == ["careful", "hasty", "broken"]
    assert (found["battles"], found["voters"]) == (60, 6)
    assert found["models"][0]["rank"] == 1
    assert found["models"][0]["low"] > found["models"][2]["high"]
    assert all(one["battles"] for one in found["models"])
    assert set(found) == {"models", "battles", "voters"}


@pytest.fixture
def task(monkeypatch):
    """Battles of a model that writes more, and imported comparisons without answers."""
    monkeypatch.setattr(board, "MIN_STYLED_BATTLES", 12)
    task = battle_arena(models={"m1": {"label": "**One** and more."}, "m2": {"label": "Two."}})
    for n in range(12):
        voter, _ = Annotator.objects.get_or_create(pseudonym=f"w-{n % 3}")
        fight(task, voter, ("left", "right", "tie")[n % 3])
    row = Comparison.objects.first()
    row.pk, row.uid, row.style = None, "imported", None
    row.save()
    cache.clear()
    return task


def test_the_board_shows_it_from_enough_battles_on(client, task):
    table = client.get(API).json()
    assert (table["battles"], table["style"]["battles"]) == (13, 12)
    assert [one["name"] for one in table["style"]["effects"]] == [
        "length",
        "headings",
        "lists",
        "bold",
    ]
    assert table["style"]["effects"][1]["effect"] is None  # nobody wrote a heading
    assert 'id="style"' in client.get(URL).text
    rows = list(csv.DictReader(StringIO(client.get(f"{URL}?format=csv").text)))
    styled = {one["name"]: one["strength"] for one in table["style"]["models"]}
    assert {row["name"]: float(row["style_strength"]) for row in rows} == styled
    Comparison.objects.filter(style__isnull=False).first().delete()
    cache.clear()
    assert client.get(API).json()["style"] is None
    assert 'id="style"' not in client.get(URL).text


def test_the_command_has_it_on_request(task):
    found = report("--style")
    assert found["battles"] == 12
    assert [one["name"] for one in found["style"]] == ["length", "headings", "lists", "bold"]
    told = StringIO()
    call_command("arena_report", "duel", "--style", stdout=told, stderr=StringIO())
    assert "headings" in told.getvalue()
