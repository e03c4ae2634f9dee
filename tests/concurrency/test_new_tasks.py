"""People make tasks at the same time."""

import pytest

from dynabench.accounts.models import confirm_address
from dynabench.lib.errors import Refused
from tasks.making.draft_services import begin_draft, change_draft
from tasks.making.outline import data_of
from tasks.making.proposal_services import decide_proposal, propose_task
from tasks.making.services import make_task
from tasks.making.templates import templates
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
        source = templates()["entities"]
        about = {"name": "Mine", "code": f"mine-{proposer.pk}", "goal": "x", "people": "y"}
        proposal = propose_task(proposer=proposer, source=source, **about)

        def decide(approve, proposal=proposal):
            try:
                decide_proposal(
                    proposal=proposal,
                    actor=boss,
                    approve=approve,
                    reason="So.",
                    code=f"mine-{proposal.pk}",
                )
            except Refused as error:
                return error.code
            return "done"

        assert sorted(at_once(decide, answers)) == ["decided", "done"]
        proposal.refresh_from_db()
        made = Task.objects.filter(made_by=proposer)
        assert made.count() == (proposal.state == "approved")


def test_many_tabs_do_not_begin_more_than_a_person_may(at_once, settings):
    """Lock: the maker, in `make_own_task`."""
    settings.NEW_TASKS, settings.NEW_TASKS_AT_ONCE = "everybody", 2
    source = templates()["entities"]
    for _ in REPEATS:
        maker = UserFactory()
        confirm_address(maker)

        def make(number, maker=maker):
            try:
                return make_task(
                    maker=maker, code=f"mine-{maker.pk}-{number}", name="Mine", source=source
                )
            except Refused as error:
                return error.code

        made = at_once(make, range(4))
        assert made.count("quota") == 2
        assert Task.objects.filter(made_by=maker).count() == 2


def test_many_tabs_propose_no_more_than_may_wait(at_once, settings):
    """Lock: the proposer, in `propose_task`."""
    settings.NEW_TASKS, settings.NEW_TASKS_AT_ONCE = "approval", 2
    source = templates()["entities"]
    for _ in REPEATS:
        proposer = UserFactory()
        confirm_address(proposer)

        def propose(number, proposer=proposer):
            about = {"name": "Mine", "code": f"mine-{number}", "goal": "x", "people": "y"}
            try:
                return propose_task(proposer=proposer, source=source, **about)
            except Refused as error:
                return error.code

        assert at_once(propose, range(4)).count("quota") == 2
        assert TaskProposal.objects.filter(proposer=proposer).count() == 2


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
        assert data_of(draft.text).keys() == {"version", *keys}
