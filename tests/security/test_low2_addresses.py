"""An address that no mail reaches is a form error at every door, and never an error of ours."""

import pytest

from core.accounts.models import User
from core.mail.addresses import is_mail_address
from evaluation.models import TeamMember
from tasks.models import Invitation, TaskMember
from tests.support.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db
ROLE = {"role": "judge"}
ODD = [
    "ada@[93.184.216.34]",
    "ada@stra\u00dfe.example",  # mail would go to another domain, "strasse"
    "a@\u202etset.kta", "a@ex\u200bample.org", "a@ex\u00adample.org", '"\x01"@example.org',
    "a@" + "\u00fc" * 60 + ".de", "a@xn--.com", "a@ex\u2028ample.org", f"{'a' * 250}@x.org",
    "\u202ea@example.org",
]  # fmt: skip


@pytest.fixture(params=ODD)
def odd(request):
    return request.param


def test_addresses_that_mail_reaches():
    for good in (
        "ann@example.org",
        "a@ex\u00e4mple.org",
        "a+b@x.org",
        '"a"@x.org',
    ):
        assert is_mail_address(good), good
    assert not is_mail_address("")


def test_sign_up_and_reset(client, odd):
    for address, data in (
        ("/accounts/signup/", {"email": odd, "password1": "correct horse 5"}),
        ("/accounts/password/reset/", {"email": odd}),
    ):
        answer = client.post(address, data)
        assert (answer.status_code, bool(answer.context["form"].errors)) == (200, True), address
    assert not User.objects.exists()


def test_further_addresses_and_teams(as_alice, odd):
    as_alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    as_alice.post("/accounts/email/", {"email": odd, "action_add": ""})
    team = as_alice.post("/api/v1/teams/", {"name": "Us"}, "application/json").json()["id"]
    door = f"/api/v1/teams/{team}/members/"
    answer = as_alice.post(door, {"email": odd}, "application/json")
    assert answer.status_code == 422
    as_alice.post(f"/me/teams/{team}/", {"email": odd})
    assert not TeamMember.objects.filter(user=None).exists()


def test_doors_of_owners(client, nli, odd):
    owner = UserFactory(email="owner@example.org")
    TaskMember.objects.create(task=nli.task, user=owner, role="owner")
    client.force_login(owner)
    code = nli.task.code
    for address, data in (
        (f"/api/v1/tasks/{code}/members/", {"email": odd, **ROLE}),
        (f"/api/v1/tasks/{code}/invitations/", {"email": odd, **ROLE}),
        (f"/api/v1/tasks/{code}/own-workers/", {"email": odd}),
        (f"/api/v1/tasks/{code}/duties/", {"kind": "write", "amount": 1, "emails": [odd]}),
    ):
        answer = client.post(address, data, "application/json")
        assert answer.status_code == 422, address
    for address, data in (
        (f"/own/{code}/access/members/", {"email": odd, **ROLE}),
        (
            f"/own/{code}/access/invitations/",
            {"mail": "1", "addresses": odd, **ROLE, "days": 7},
        ),
    ):
        assert client.post(address, data).status_code == 422, address
    assert TaskMember.objects.count() == 1
    assert not Invitation.objects.exists()


def test_providers(client, provider, odd):
    told = {"sub": "u5", "email": odd, "email_verified": True}
    answer = provider.come(client, told, {"sub": "u5"})
    assert answer.url == "/accounts/3rdparty/signup/"
    assert not User.objects.exists()
