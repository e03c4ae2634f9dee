"""Somebody who makes or proposes a task."""

import pytest

from core.accounts.models import confirm_address
from tests.support.factories import UserFactory
from tests.support.writing import signed_in

NEW = "/new/template/entities/"


@pytest.fixture
def ada(db):
    """Somebody with a confirmed address."""
    user = UserFactory(email="ada@example.com")
    confirm_address(user)
    return user


@pytest.fixture
def as_ada(ada):
    return signed_in(ada)
