"""Two people take names that look alike at the same time."""

import pytest

from core.errors import Invalid
from evaluation.models import Submission, Team
from evaluation.submissions.services import publish_model
from evaluation.submissions.teams.services import make_team
from tests.support.boards import measured
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import TaskFactory, UserFactory
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)


def test_of_two_teams_that_look_alike_one_is_made(at_once):
    """Lock: the names of teams, in `make_team`. Both names are new to the unique constraint."""

    def make(pair):
        user, name = pair
        try:
            make_team(actor=user, name=name)
        except Invalid:
            return 0
        return 1

    people = [UserFactory(), UserFactory()]
    for number in REPEATS:
        names = [f"Lab {number} paypal", f"Lab {number} раypal"]
        assert sum(at_once(make, zip(people, names, strict=True))) == 1
        assert Team.objects.filter(name__in=names).count() == 1


def test_of_two_models_that_look_alike_one_is_published(at_once):
    """Lock: the names of the task's models, in `publish`."""
    task = TaskFactory(code="nli")
    version = set_version(task)

    def show(model):
        try:
            publish_model(submission=model, actor=model.owner)
        except Invalid:
            return 0
        return 1

    for number in REPEATS:
        names = [f"bert {number} a", f"bеrt {number} a"]
        models = [accepted_model(task, UserFactory(), name=name) for name in names]
        for model in models:
            measured(model, version, 0.6)
        assert sum(at_once(show, models)) == 1
        assert Submission.objects.filter(name__in=names, is_published=True).count() == 1
