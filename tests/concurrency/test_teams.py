"""Members of a team act at the same instant."""

import pytest

from core.accounts.models import confirm_address
from core.errors import Refused
from evaluation.models import Submission
from evaluation.submissions.services import submit_model
from evaluation.submissions.teams import services
from tests.support.factories import TaskFactory, UserFactory
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def team_of_five(name):
    people = UserFactory.create_batch(5)
    team = services.make_team(actor=people[0], name=name)
    for person in people[1:]:
        confirm_address(person)
        invitation = services.invite_member(team=team, actor=people[0], email=person.email)
        services.accept_invitation(invitation=invitation, user=person)
    return team, people


@pytest.mark.parametrize("repeat", races(10))
def test_five_members_have_one_quota(at_once, repeat):
    """Lock: the team, in `submit_model`. Each member alone has a quota of three."""
    task, (team, people) = TaskFactory(code="nli"), team_of_five("Lab")

    def hand_in(number):
        told = {"kind": "hub", "source": "org/name", "revision": COMMIT, "team": team}
        try:
            owner = people[number % 5]
            submit_model(task=task, owner=owner, name=f"Model {number}", **told)
        except Refused as refused:
            return refused.code
        return "taken"

    results = at_once(hand_in, range(15))
    assert (results.count("taken"), results.count("quota")) == (3, 12)
    assert Submission.objects.filter(team=team).count() == 3


@pytest.mark.parametrize("repeat", races(10))
def test_two_owners_cannot_remove_each_other(at_once, repeat):
    """Lock: the team, in each change of members."""
    team, (one, other, *_) = team_of_five("Lab")
    first, second = team.members.get(user=one), team.members.get(user=other)
    services.set_owner(team=team, actor=one, member=second, is_owner=True)

    def remove(pair):
        try:
            services.remove_member(team=team, actor=pair[0], member=pair[1])
        except Refused:
            return 0
        return 1

    assert sum(at_once(remove, [(one, second), (other, first)])) == 1
    assert team.members.filter(is_owner=True).count() == 1


def test_an_invitation_is_accepted_or_taken_back(at_once):
    team, (owner, *_) = team_of_five("Lab")
    late = UserFactory()
    confirm_address(late)
    for _ in races(10):
        invitation = services.invite_member(team=team, actor=owner, email=late.email)

        def act(accepts, invitation=invitation):
            try:
                if accepts:
                    services.accept_invitation(invitation=invitation, user=late)
                else:
                    services.remove_member(team=team, actor=owner, member=invitation)
            except Refused:
                pass

        at_once(act, [True, False])
        assert not team.members.filter(address=late.email).exists()
