"""Owners of a community, and administrators, act at the same time."""

import pytest

from core.accounts.models import confirm_address
from core.errors import Refused
from dynabench.communities.models import Community, CommunityProposal
from dynabench.communities.proposal_services import decide_community, propose_community
from dynabench.communities.services import remove_owner
from tests.support.factories import UserFactory
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)


def done(service, **about):
    try:
        service(**about)
    except Refused:
        return 0
    return 1


def test_two_owners_cannot_remove_each_other(at_once):
    """Lock: the community, in `remove_owner`."""
    for number in REPEATS:
        made = Community.objects.create(slug=f"words-{number}", name="Words")
        pair = UserFactory(), UserFactory()
        made.owners.set(pair)

        def remove(two, made=made):
            return done(remove_owner, community=made, actor=two[0], user=two[1])

        assert sum(at_once(remove, [pair, pair[::-1]])) == 1
        assert made.owners.count() == 1


def test_a_proposal_founds_one_community(at_once):
    """Locks: the proposal, in `decide_community`."""
    boss, proposer = UserFactory(is_superuser=True), UserFactory()
    confirm_address(proposer)
    for number in REPEATS:
        about = {"name": "Words", "slug": f"words-{number}", "goal": "x"}
        proposal = propose_community(proposer=proposer, **about)

        def decide(slug, proposal=proposal):
            about = {"approve": True, "reason": "", "slug": slug}
            return done(decide_community, proposal=proposal, actor=boss, **about)

        assert sum(at_once(decide, [f"a-{number}", f"b-{number}"])) == 1
        assert Community.objects.filter(slug__endswith=f"-{number}").count() == 1


def test_no_more_proposals_wait_than_may(at_once, settings):
    """Lock: the proposer, in `propose_community`."""
    settings.NEW_TASKS_AT_ONCE = 1
    for _ in REPEATS:
        proposer = UserFactory()
        confirm_address(proposer)

        def propose(slug, proposer=proposer):
            about = {"name": "Words", "slug": f"{slug}-{proposer.pk}", "goal": "x"}
            return done(propose_community, proposer=proposer, **about)

        assert sum(at_once(propose, ["a", "b", "c"])) == 1
        assert CommunityProposal.objects.filter(proposer=proposer).count() == 1
