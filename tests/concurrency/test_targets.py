"""Targets are changed, and rounds are opened with them, at the same time."""

import threading
import time

import pytest

from core.accounts.models import LogEntry
from core.errors import Refused
from tasks.models import ModelUse, Round, TargetModel, TaskMember
from tasks.rounds import services, states
from tasks.rounds.loop import replace_target
from tasks.rounds.services import add_target_to_planned_round, change_round, delete_round
from tasks.rounds.states import set_round_state
from tasks.targets.ask_before_opening import ask_targets
from tasks.targets.endpoints.base import Usage
from tasks.targets.services import change_target, delete_target
from tasks.targets.spending_services import Payer, note_uses
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(30)
PLAIN = {"url": "https://good.test/", "secret_env": ""}
TIED = {"url": "https://good.test/", "secret_env": "TARGET_SECRET"}
MOVED = {"url": "https://thief.test/"}


def test_a_secret_never_goes_where_an_editor_says(at_once):
    """Lock: the target, in `change_target`."""
    task = TaskFactory(code="nli")
    editor, boss = UserFactory(), UserFactory(is_superuser=True)
    TaskMember.objects.create(task=task, user=editor, role="editor")
    target = TargetModel.objects.create(task=task, name="mine", **PLAIN)

    def change(asked):
        actor, fields = asked
        try:
            change_target(target=target, actor=actor, fields=fields)
        except Refused:
            assert actor == editor

    for _ in REPEATS:
        TargetModel.objects.update(**PLAIN)
        at_once(change, [(editor, MOVED), (boss, TIED)])
        found = TargetModel.objects.get()
        assert (found.url, found.secret_env) == (TIED["url"], TIED["secret_env"])


def test_a_round_opens_with_the_target_that_answered(at_once, monkeypatch):
    """Lock: the targets, in `check_unchanged`; a change of one looks afterwards for open rounds."""
    round = RoundFactory(task=TaskFactory(code="nli"), state="ready")
    ContextFactory(round=round)
    target = scripted_target(round, label="neutral")
    boss = UserFactory(is_superuser=True)
    log = states.log
    asked = threading.Event()

    def answered(*arguments):
        found = ask_targets(*arguments)
        asked.set()
        return found

    def slow(actor, action, *rest, **data):  # between the look at the targets and the commit
        if action == "round.open":
            time.sleep(0.05)
        return log(actor, action, *rest, **data)

    monkeypatch.setattr(states, "ask_targets", answered)
    monkeypatch.setattr(states, "log", slow)

    def action(what):
        try:
            if what == "open":
                set_round_state(round=round, state="open", actor=None)
            else:
                asked.wait()
                time.sleep(0.02)
                change_target(target=target, actor=boss, fields={"options": {"label": what}})
        except Refused:
            pass

    for _ in range(10):
        Round.objects.update(state="ready", opened_at=None)
        TargetModel.objects.update(options={"label": "neutral"})
        asked.clear()
        at_once(action, ["open", "entailment"])
        if Round.objects.get().state == "open":
            assert TargetModel.objects.get().options == {"label": "neutral"}


def test_a_target_is_replaced_once(at_once):
    """Lock: the round, in `replace_target`."""
    round = RoundFactory(task=TaskFactory(code="nli"), state="ready")
    ContextFactory(round=round)
    broken = scripted_target(round, label="neutral")
    others = [
        TargetModel.objects.create(
            task=round.task, name=name, adapter="scripted", options={"label": "neutral"}
        )
        for name in ("a", "b", "c", "d")
    ]
    set_round_state(round=round, state="open", actor=None)

    def replaced(new):
        try:
            replace_target(round=Round.objects.get(), old_target=broken, new_target=new, actor=None)
        except Refused:
            return 0
        return 1

    assert sum(at_once(replaced, others)) == 1
    assert LogEntry.objects.filter(action="round.target_replaced").count() == 1
    assert Round.objects.get().opened_at


def test_of_many_new_targets_one_joins_the_planned_round(at_once):
    """Lock: the planned rounds, in `add_target_to_planned_round`."""
    boss, task = UserFactory(is_superuser=True), TaskFactory(code="nli")
    for number in REPEATS:
        round = RoundFactory(task=task, number=number + 1, state="draft")
        fresh = [
            TargetModel.objects.create(task=round.task, name=f"t{number}-{n}", adapter="scripted")
            for n in range(4)
        ]
        joined = at_once(
            lambda target: add_target_to_planned_round(target=target, actor=boss), fresh
        )
        assert sum(one is not None for one in joined) == 1
        assert round.round_targets.count() == 1


def test_calls_at_once_are_all_counted(at_once):
    """No lock: one update adds, and the row of target, round and day is unique."""
    round = RoundFactory(task=TaskFactory(code="nli"))
    scripted_target(round, label="neutral")
    (entry,) = round.round_targets.select_related("target")
    payers = [Payer(entry.target, entry.round_id), Payer(entry.target)]
    for number in REPEATS:
        at_once(lambda _: note_uses(payers, [Usage(3, 2)] * 2), range(6))
        found = ModelUse.objects.values_list("requests", "tokens_in")
        assert [*found] == [(6 * (number + 1), 18 * (number + 1))] * 2


@pytest.mark.parametrize("what", ["round", "target"])
def test_what_is_taken_meanwhile_is_not_deleted(at_once, monkeypatch, what):
    """Locks: the round, in `delete_round`, while it opens; the target, in `delete_target`."""
    boss = UserFactory(is_superuser=True)
    round = RoundFactory(task=TaskFactory(code="nli"), state="ready")
    ContextFactory(round=round)
    target = TargetModel.objects.create(task=round.task, name="free", adapter="scripted")
    written = threading.Event()
    log = states.log

    def slow(*arguments, **data):  # all is written, and nothing committed
        written.set()
        time.sleep(0.1)
        return log(*arguments, **data)

    monkeypatch.setattr(states if what == "round" else services, "log", slow)

    def take():
        if what == "round":
            return set_round_state(round=round, state="open", actor=None)
        return change_round(round=round, actor=boss, fields={}, targets=[target])

    def delete():
        written.wait()
        with pytest.raises(Refused):
            delete_round(round=round, actor=boss) if what == "round" else delete_target(
                target=target, actor=boss
            )

    at_once(lambda action: action(), [take, delete])
    assert Round.objects.exists()
    assert TargetModel.objects.exists()
