"""Members read the log of their own task, and nothing in it that is not theirs to know."""

import ast
import re
from pathlib import Path

import pytest

from core.accounts.models import Annotator, LogEntry
from core.accounts.services import log
from dynabench.manage.log import PERSONAL_ACTIONS, shorten_target
from dynabench.manage.log_words import ACTION_WORDS, LOG_AREAS
from tasks.contexts.services import set_retired
from tasks.models import TaskMember
from tasks.rounds.states import set_round_state
from tests.support.factories import RoundFactory, TaskFactory
from tests.support.judging import write

URL = "/own/nli/log/"
BASE = Path(__file__).parents[2]


@pytest.fixture
def actions(nli, bob):
    Annotator.objects.filter(user=bob).update(pseudonym="w-ofbob")
    set_round_state(round=nli, state="paused", actor=bob)
    set_retired(contexts=nli.contexts.all(), is_retired=True, actor=bob)
    log(bob, "member.added", nli.task, user="carol@example.com")
    log(bob, "gold.marked", nli, label="neutral")
    log(bob, "submission.handed_in", nli.task, model="secret")
    LogEntry.objects.create(action="round.old", target="nli round 1")
    other = RoundFactory(task=TaskFactory(code="sentiment"), number=1)
    log(bob, "round.foreign", other)


@pytest.mark.parametrize(
    ("target", "short"),
    [
        ("nli round 2", "round 2"),
        ("nli/round-1 v2", "round-1 v2"),
        ("snapshot 1 of nli", "snapshot 1"),
        ("50807f5e-1f0a-4a5f-8b57-1d3f0a9d3a11", "50807f5e"),
        ("nli", "nli"),
    ],
)
def test_a_target_is_named_without_its_task(target, short):
    assert shorten_target(target, "nli") == short


@pytest.mark.parametrize(
    ("role", "shown", "hidden"),
    [
        ("owner", ["carol@example.com", "bob@example.com", "gold.marked"], []),
        ("reviewer", ["w-ofbob", "gold.marked"], ["bob@example.com", "carol@example.com"]),
        (
            "viewer",
            ["member.added"],
            ["w-ofbob", "bob@example.com", "carol@example.com", "gold.marked"],
        ),
    ],
)
def test_what_members_read(as_alice, alice, nli, actions, role, shown, hidden):
    TaskMember.objects.create(task=nli.task, user=alice, role=role)
    page = as_alice.get(URL).text
    for words in [*shown, "round.paused", "contexts.retired", "round.old"]:
        assert words in page
    for words in [*hidden, "submission.handed_in", "round.foreign"]:
        assert words not in page


@pytest.mark.parametrize("role", ["owner", "reviewer", "viewer"])
def test_entries_about_examples_show_their_texts_to_reviewers(as_alice, alice, bob, nli, role):
    TaskMember.objects.create(task=nli.task, user=alice, role=role)
    example = write(nli, bob)
    log(bob, "example.withdrawn", example)
    reads = role != "viewer"
    page = as_alice.get(URL).text
    assert (example.inputs["hypothesis"] in page) == reads
    assert (f'review/{example.uuid}/"' in page) == reads
    warning = "content_warning: {text: It hurts.}"
    nli.task.config_text = nli.task.config_text.replace("content_warning: null", warning)
    nli.task.save()
    page = as_alice.get(URL).text
    assert example.inputs["hypothesis"] not in page
    assert str(example.uuid)[:8] in page


def test_others_read_no_log(as_alice, nli):
    assert as_alice.get(URL).status_code == 404


def test_the_log_is_filtered_by_what_it_is_about(as_alice, alice, nli, actions):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")

    def codes(area):
        return set(re.findall(r'data-action="([^"]+)"', as_alice.get(f"{URL}?area={area}").text))

    assert codes("people") == {"member.added"}
    assert codes("judging") == {"gold.marked"}
    assert codes("rounds") == {"round.paused", "contexts.retired", "round.old"}
    assert codes("") == codes("people") | codes("judging") | codes("rounds")


def second_of(call):
    return call.args[1] if len(call.args) > 1 else None


def test_every_logged_action_has_words_and_an_area():
    """Actions that are written out in the code; people's own are in no task's log."""
    written = set()
    for room in ("tasks", "annotation", "validation", "evaluation", "leaderboard", "dynabench"):
        for file in (BASE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                name = isinstance(node, ast.Call) and getattr(node.func, "id", "")
                if name == "log" and isinstance(second_of(node), ast.Constant):
                    written.add(second_of(node).value)
    of_communities = {code for code in written if code.startswith("community.")}
    elsewhere = (*PERSONAL_ACTIONS, "team", "site")
    written = {code for code in written - of_communities if code.split(".")[0] not in elsewhere}
    written.discard("task.deleted")  # with its log
    assert written
    assert sorted(written - ACTION_WORDS.keys()) == []
    kinds = {kind for _title, kinds in LOG_AREAS.values() for kind in kinds}
    assert sorted({code.split(".")[0] for code in ACTION_WORDS} - kinds) == []
