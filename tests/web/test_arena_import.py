"""manage.py import_comparisons and arena_report: whole files or nothing, each id once."""

import json
import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from core.accounts.models import Annotator
from core.errors import Refused
from evaluation.submissions.services import submit_model
from leaderboard.models import Comparison
from tasks.models import Round, Task
from tasks.rounds.services import plan_round
from tasks.rounds.states import set_round_state
from tests.support.factories import TaskFactory, UserFactory

HEAD = "id,worker,left,right,winner"
ROWS = ["1,w1,a,b,left", "2,w1,b,c,tie", "3,w2,c,a,right", "4,w2,a,b,both_bad", "5,w3,b,a,left"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def load(tmp_path):
    def load(*lines, head=HEAD, end="\n", create=True):
        file, out, err = tmp_path / "votes.csv", StringIO(), StringIO()
        raw = [line if isinstance(line, bytes) else line.encode() for line in (head, *lines)]
        file.write_bytes(end.encode().join(raw) + end.encode())
        more = ["--create"] if create else []
        try:
            call_command(
                "import_comparisons", str(file), "--task", "duel", *more, stdout=out, stderr=err
            )
        except CommandError as error:
            return str(error), err.getvalue()
        return out.getvalue(), err.getvalue()

    return load


def report(*options, code="duel"):
    out, err = StringIO(), StringIO()
    call_command("arena_report", code, *options, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def numbers(told):
    """The whole numbers of a text: of a file that is stored, how many are new and were stored."""
    return [int(number) for number in re.findall(r"\d+", told)]


def stored():
    parts = ("uid", "voter__pseudonym", "left__name", "right__name", "winner")
    return list(Comparison.objects.order_by("uid").values_list(*parts))


def test_a_file_makes_an_arena_and_its_comparisons(load):
    admin = UserFactory(is_superuser=True)
    assert numbers(load(*ROWS)[0]) == [5, 0]
    task = Task.objects.get(code="duel")
    assert (task.config.kind, task.is_visible) == ("arena", False)
    assert task.members.get().user == admin
    assert stored()[2] == ("3", "duel:w2", "c", "a", "right")
    assert set(Annotator.objects.filter(pseudonym__startswith="duel:").values_list("source")) == {
        ("import",)
    }


def test_the_same_file_again_adds_nothing(load):
    load(*ROWS)
    before = stored()
    assert numbers(load(*ROWS, "6,w9,a,c,left")[0]) == [1, 5]
    assert stored()[:5] == before


def test_marks_line_ends_quotes_and_further_columns_are_read(load):
    rows = ['7,"w,1","model ""x""",b,left,later', '8,w2,b,"model ""x""",tie,']
    head = "\ufeffid,worker,left,right,winner,when"
    assert numbers(load(*rows, head=head, end="\r\n")[0]) == [2, 0]
    assert stored()[0] == ("7", "duel:w,1", 'model "x"', "b", "left")


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("9,w1,a,a,left", "right"),
        ("9,w1,a,b,LEFT", "winner"),
        ("9,w1,a,b,", "winner"),
        ("9,,a,b,left", "worker"),
        (f"9,w1,{'a' * 101},b,left", "left"),
        ("9,w1,a\x00,b,left", "left"),
        ("1,w1,a,b,right", "id"),
        ("9,w1,a,b", "5"),
        (b"9,w1,\xff,b,left", "UTF-8"),
        ('9,"w1,a,b,left', "quote"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_stored(load, line, column):
    told, errors = load(*ROWS, line)
    assert numbers(told) == [1]
    assert f"votes.csv:{len(ROWS) + 2}:" in errors
    assert column in errors
    assert not Task.objects.exists()
    assert not Comparison.objects.exists()


def test_several_people_compare_one_pair_under_its_id(load):
    lines = [f"1,w{number},a,b,left" for number in range(1, 13)]
    assert numbers(load(*lines[:3], "1,w2,a,b,left")[0]) == [3, 1]
    assert {(uid, who) for uid, who, *_ in stored()} == {
        ("1", "duel:w1"), ("1 (2)", "duel:w2"), ("1 (3)", "duel:w3"),
    }  # fmt: skip
    assert numbers(load(*reversed(lines))[0]) == [9, 3]
    assert numbers(load(*lines)[0]) == [0, 12]
    assert Comparison.objects.count() == 12
    assert "votes.csv:2: `id`" in load("1,w5,a,b,tie")[1]


def test_an_id_that_is_stored_keeps_its_comparison(load):
    load(*ROWS)
    before = stored()
    assert "votes.csv:2: `id`" in load("1,w1,a,b,tie", "10,w1,a,b,tie")[1]
    assert stored() == before


@pytest.mark.parametrize("head", ["id,worker,left,right", "id,id,worker,left,right,winner", ""])
def test_the_first_line_names_the_columns(load, head):
    line = 1 if head else 2  # blank lines before it are none
    assert f"votes.csv:{line}:" in load(*ROWS, head=head)[1]


def test_only_an_arena_takes_comparisons(load):
    assert "--create" in load(*ROWS, create=False)[0]
    TaskFactory(code="nli")
    TaskFactory(code="duel", config_text=Task.objects.get().config_text)
    assert "arena" in load(*ROWS)[0]
    assert not Comparison.objects.exists()
    with pytest.raises(CommandError, match="arena"):
        report()


def test_the_report_has_exactly_these_keys(load):
    load(*ROWS)
    said, _ = report("--json")
    found = json.loads(said)
    assert set(found) == {"models", "battles", "voters"}
    assert (found["battles"], found["voters"]) == (5, 3)
    keys = {"name", "strength", "low", "high", "rank", "battles", "wins", "ties"}
    assert all(set(model) == keys for model in found["models"])
    counts = {m["name"]: (m["battles"], m["wins"], m["ties"]) for m in found["models"]}
    assert counts == {"a": (4, 2, 1), "b": (4, 1, 2), "c": (2, 0, 1)}
    assert sum(model["strength"] for model in found["models"]) == pytest.approx(0, abs=1e-9)
    assert report("--json")[0] == said
    assert {"a", "b", "c"} <= set(report()[0].split())


def test_the_report_says_what_it_cannot_rank(load):
    load("1,w1,a,b,left", "2,w2,a,b,left", "3,w1,c,d,left", "4,w2,b,e,left")
    said, errors = report("--json")
    found = {one["name"]: one for one in json.loads(said)["models"]}
    assert found["c"]["strength"] is found["d"]["rank"] is None
    bounded, unconnected = errors.splitlines()
    assert "half" in bounded
    assert "c, d" in unconnected


def test_an_arena_without_comparisons_has_no_report(load):
    load()
    with pytest.raises(CommandError, match="no comparisons"):
        report()
    with pytest.raises(CommandError, match="no task"):
        report(code="nothing")


def test_nothing_is_written_for_an_arena(load):
    load(*ROWS)
    task, person = Task.objects.get(), UserFactory()
    with pytest.raises(Refused):
        plan_round(task=task, actor=person, fields={})
    with pytest.raises(Refused):
        submit_model(task=task, owner=person, kind="predictions", name="m")
    round = Round.objects.create(task=task, number=1)
    with pytest.raises(Refused):
        set_round_state(round=round, state=Round.State.OPEN, actor=None)


def test_an_arenas_page_offers_nothing_that_it_cannot_do(load, client):
    load(*ROWS)
    Task.objects.update(is_visible=True)
    page = client.get("/t/duel/").content.decode()
    links = set(re.findall(r'href="(/t/duel/[^"]*)"', page))
    assert links == {"/t/duel/", "/t/duel/leaderboard/", "/t/duel/data/"}
    assert "submit" not in page.partition("<main")[2].partition("</main")[0]
