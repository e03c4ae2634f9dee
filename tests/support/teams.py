"""Teams, their members, and models that are submitted for them."""

import pytest

from core.accounts.models import confirm_address
from core.accounts.services import get_annotator
from evaluation.submissions.services import submit_model
from evaluation.submissions.teams import services
from tests.support.factories import RoundFactory, TaskFactory, UserFactory

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def person(email):
    user = UserFactory(email=email)
    get_annotator(user)
    confirm_address(user)
    return user


def team_of(owner, *others, name="Lab"):
    team = services.make_team(actor=owner, name=name)
    for other in others:
        invitation = services.invite_member(team=team, actor=owner, email=other.email)
        services.accept_invitation(invitation=invitation, user=other)
    return team


def hand_in(task, owner, name, **told):
    return submit_model(
        task=task, owner=owner, kind="hub", source="org/name", revision=COMMIT, name=name, **told
    )


@pytest.fixture
def task():
    return RoundFactory(task=TaskFactory(code="nli")).task


@pytest.fixture
def owner():
    return person("owner@example.com")


@pytest.fixture
def mate():
    return person("mate@example.com")


@pytest.fixture
def team(owner, mate):
    return team_of(owner, mate)
