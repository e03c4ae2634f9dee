"""Administrators leave at the same time, and links that undo are opened at the same time."""

import pytest

from core.accounts.access_services import change_administrator_rights, change_suspension
from core.accounts.administrators import LastAdministrator
from core.accounts.deletion_services import delete_user
from core.accounts.models import LogEntry, Undo, User, confirm_address
from core.accounts.undo_services import create_undo_link, find_undo, restore_account
from core.errors import Refused
from tests.support.factories import UserFactory
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(10)
WAYS = (
    lambda user: delete_user(user=user),
    lambda user: change_suspension(user=user, is_suspended=True, actor=None),
    lambda user: change_administrator_rights(user=user, is_administrator=False, actor=None),
)


@pytest.mark.parametrize("time", REPEATS)
def test_of_two_administrators_who_leave_one_stays(at_once, time):
    """Lock: all administrators, in `check_administrator_remains`."""
    pairs = [(UserFactory(is_superuser=True), WAYS[(time + n) % 3]) for n in range(2)]

    def go(pair):
        user, way = pair
        try:
            way(user)
        except LastAdministrator:
            return 0
        return 1

    assert sum(at_once(go, pairs)) == 1
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 1


@pytest.mark.parametrize("time", REPEATS)
def test_a_link_undoes_once(at_once, time):
    """Lock: the account, in `undo`."""
    user = UserFactory()
    confirm_address(user)
    found = find_undo(create_undo_link(user=user, address="old@example.org"))

    def go(_):
        try:
            restore_account(undo=found)
        except Refused:
            return 0
        return 1

    assert sum(at_once(go, range(4))) == 1
    assert LogEntry.objects.filter(action="person.restored").count() == 1
    assert not Undo.objects.exists()
