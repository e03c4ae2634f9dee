"""Roles follow what a provider tells of groups, and never go because it told nothing."""

import pytest

from core.accounts.models import User
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from tests.support.openid import use

pytestmark = pytest.mark.django_db
TOLD = {"sub": "s-1", "email": "ada@example.org", "email_verified": True}
OVERAGE = {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "x"}}}


@pytest.fixture
def come(provider, settings, nli, client):
    """Sign Ada in with these claims; returns whether she administers, and her role in nli."""
    use(
        provider,
        settings,
        {
            "bench-admins": [("", "administrator")],
            "linguists": [("nli", "judge")],
            "7": [("nli", "viewer")],
        },
    )
    UserFactory(email="boss@example.org", is_superuser=True)

    def come(userinfo, id_token=None):
        client.logout()
        provider.come(client, TOLD | userinfo, {"sub": "s-1"} | (id_token or {}))
        user = User.objects.get(email=TOLD["email"])
        members = TaskMember.objects.filter(user=user).values_list("role", flat=True)
        return user.is_superuser, members.first()

    return come


def test_a_group_told_as_a_text_is_one_group(come):
    assert come({"groups": "bench-admins"}) == (True, None)
    assert come({"groups": "linguists"}) == (False, "judge")


def test_groups_that_are_not_told_take_nothing_away(come, caplog):
    assert come({"groups": ["bench-admins", "linguists"]}) == (True, "judge")
    for claims in (
        {}, OVERAGE, {"hasgroups": True}, {"groups": None}, {"groups": {"a": 1}},
        {"groups": [{"name": "x"}, ["y"]]}, {"groups": True}, {"groups": [None]}, {"groups": ""},
    ):  # fmt: skip
        caplog.clear()
        assert come(claims) == (True, "judge"), claims
        assert [one for one in caplog.records if one.name == "dynabench.sign_in"], claims


def test_who_is_in_no_group_has_no_role(come):
    assert come({"groups": ["bench-admins", "linguists"]}) == (True, "judge")
    assert come({"groups": []}) == (False, None)


def test_what_names_no_group_is_left_out(come):
    assert come({"groups": [{"name": "bench-admins"}, True, None, 7, "x"]}) == (False, "viewer")


def test_groups_are_read_of_either_source(come):
    assert come({}, {"groups": ["linguists"]}) == (False, "judge")
    assert come(OVERAGE, {"groups": "bench-admins"}) == (True, None)


def test_the_last_administrator_stays_one_and_loses_other_roles(come, caplog):
    assert come({"groups": ["bench-admins", "linguists"]}) == (True, "judge")
    User.objects.filter(email="boss@example.org").update(is_active=False)
    assert come({"groups": ["x"]}) == (True, None)
    User.objects.filter(email="boss@example.org").update(is_active=True)
    assert come({"groups": ["x"]}) == (False, None)
