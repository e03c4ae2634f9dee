"""No door takes the site's last administrator away."""

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from core.accounts.deletion_services import delete_user
from core.accounts.models import User
from tests.support.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss():
    return UserFactory(email="boss@example.org", is_superuser=True)


@pytest.fixture
def as_boss(client, boss):
    client.post("/accounts/login/", {"login": boss.email, "password": PASSWORD})
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return client


def stays(boss):
    return User.objects.filter(pk=boss.pk, is_active=True, is_superuser=True).exists()


def test_not_by_command(boss):
    with pytest.raises(CommandError):
        call_command("people", "suspend", boss.email)
    assert stays(boss)
    UserFactory(is_superuser=True)
    call_command("people", "suspend", boss.email)
    assert not stays(boss)


def test_not_by_deletion_of_their_own(as_boss, boss):
    as_boss.post("/me/data/delete/", {"sure": "yes"})
    assert stays(boss)
    assert as_boss.get("/").wsgi_request.user == boss
    UserFactory(is_superuser=True)
    as_boss.post("/me/data/delete/", {"sure": "yes"})
    assert not stays(boss)


@pytest.mark.parametrize("lost", ["is_active", "is_superuser"])
def test_not_by_the_form_of_the_admin(as_boss, boss, lost):
    address = reverse("admin:accounts_user_change", args=[boss.pk])
    data = {"email": boss.email, "is_active": "on", "is_superuser": "on"}
    data |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
    del data[lost]
    assert as_boss.post(address, data).status_code == 200
    assert stays(boss)


def test_not_by_deletions_of_the_admin(as_boss, boss):
    as_boss.post(reverse("admin:accounts_user_delete", args=[boss.pk]), {"post": "yes"})
    many = {"action": "delete_selected", "_selected_action": [boss.pk], "post": "yes"}
    as_boss.post(reverse("admin:accounts_user_changelist"), many)
    assert stays(boss)
    other = UserFactory(is_superuser=True)
    as_boss.post(reverse("admin:accounts_user_delete", args=[other.pk]), {"post": "yes"})
    assert stays(boss)
    assert not User.objects.filter(pk=other.pk).exists()


def test_who_had_left_before_a_backup_goes_again(boss):
    delete_user(user=boss, is_repeated=True)
    assert not stays(boss)
