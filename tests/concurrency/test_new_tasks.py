"""People make tasks at the same time."""

import pytest

from core.accounts.models import confirm_address
from core.errors import Refused
from tasks.making.draft_services import begin_draft, change_draft
from tasks.making.outline import parse_data
from tasks.making.proposal_services import decide_proposal, request_approval
from tasks.making.services import make_task
from tasks.making.templates import load_templates
from tasks.models import Task, TaskDraft, TaskProposal
from tests.support.factories import UserFactory
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)


@pytest.mark.parametrize("answers", [(True, True), (True, False)])
def test_a_proposal_is_decided_once(at_once, settings, answers):
    """Lock: the proposal, in `decide_proposal`."""
    settings.NEW_TASKS = "approval"
    boss = UserFactory(is_superuser=True)
    for _ in REPEATS:
        proposer = UserFactory()
        confirm_address(proposer)
        source = load_templates()["entities"]
        task = make_task(creator=proposer, code=f"mine-{proposer.pk}", name="Mine", source=source)
        about = {"goal": "x", "people": "y", "show": False}
        proposal = request_approval(task=task, actor=proposer, **about)

        def decide(approve, proposal=proposal):
            try:
                decide_proposal(
                    proposal=proposal,
                    actor=boss,
                    approve=approve,
                    reason="So.",
                )
            except Refused as error:
                return error.code
            return "done"

        assert sorted(at_once(decide, answers)) == ["decided", "done"]
        proposal.refresh_from_db()
        task.refresh_from_db()
        assert task.is_unapproved == (proposal.state == "declined")


def test_many_tabs_do_not_begin_more_than_a_person_may(at_once, settings):
    """Lock: the creator, in `make_own_task`."""
    settings.NEW_TASKS, settings.NEW_TASKS_AT_ONCE = "everybody", 2
    source = load_templates()["entities"]
    for _ in REPEATS:
        maker = UserFactory()
        confirm_address(maker)

        def make(number, maker=maker):
            try:
                return make_task(
                    creator=maker, code=f"mine-{maker.pk}-{number}", name="Mine", source=source
                )
            except Refused as error:
                return error.code

        made = at_once(make, range(4))
        assert made.count("quota") == 2
        assert Task.objects.filter(made_by=maker).count() == 2


def test_a_task_is_asked_for_once(at_once, settings):
    """Lock: the request, in `request_approval`; also one that was declined before."""
    settings.NEW_TASKS = "approval"
    source, owner = load_templates()["entities"], UserFactory()
    confirm_address(owner)
    for repeat in REPEATS:
        settings.NEW_TASKS_AT_ONCE = repeat + 1
        task = make_task(creator=owner, code=f"mine-{repeat}", name=f"Mine {repeat}", source=source)
        if repeat % 2:
            about = {"goal": "x", "people": "y", "proposer": owner, "wanted_code": task.code}
            TaskProposal.objects.create(task=task, name="Mine", state="declined", **about)

        def ask(number, task=task):
            try:
                return request_approval(task=task, actor=owner, goal=str(number), people="y")
            except Refused as error:
                return error.code

        assert at_once(ask, range(3)).count("waiting") == 2
        assert TaskProposal.objects.get(task=task).state == "waiting"


def test_many_tabs_begin_no_more_drafts_than_a_person_may(at_once, settings):
    """Lock: the owner, in `begin_draft`."""
    settings.NEW_TASKS, settings.NEW_TASKS_AT_ONCE = "everybody", 2
    for _ in REPEATS:
        owner = UserFactory()
        confirm_address(owner)

        def begin(number, owner=owner):
            try:
                return begin_draft(owner=owner, source=None)
            except Refused as error:
                return error.code

        assert at_once(begin, range(4)).count("quota") == 2
        assert owner.task_drafts.count() == 2


def test_two_steps_at_once_are_both_kept(at_once, settings):
    """Lock: the draft, in `change_draft`."""
    settings.NEW_TASKS = "everybody"
    owner = UserFactory(is_superuser=True)
    for _ in REPEATS:
        draft = TaskDraft.objects.create(owner=owner, text="version: 1\n")
        keys = ["name", "summary", "instructions", "language"]
        at_once(
            lambda key, draft=draft: change_draft(
                draft=draft, change=lambda data: data.update({key: "x"})
            ),
            keys,
        )
        draft.refresh_from_db()
        assert parse_data(draft.text).keys() == {"version", *keys}
