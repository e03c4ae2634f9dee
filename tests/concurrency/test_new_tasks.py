"""People make tasks at the same time."""

import pytest

from dynabench.accounts.models import confirm_address
from dynabench.lib.errors import Refused
from tasks.making.services import make_task
from tasks.making.templates import templates
from tasks.models import Task
from tests.support.factories import UserFactory
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)


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
