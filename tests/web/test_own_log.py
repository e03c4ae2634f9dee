"""Members read the log of their own task, and nothing in it that is not theirs to know."""

import pytest

from core.accounts.models import Annotator, LogEntry
from core.accounts.services import log
from tasks.contexts.services import set_retired
from tasks.models import TaskMember
from tasks.rounds.states import set_round_state
from tests.support.factories import RoundFactory, TaskFactory

URL = "/own/nli/log/"


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


def test_others_read_no_log(as_alice, nli):
    assert as_alice.get(URL).status_code == 404
