"""Of processes that publish the same release at once, one does."""

# ruff: noqa: F811  (fixtures are named where they are used)

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from evaluation.models import Publication
from tests.support.factories import ContextFactory, RoundFactory
from tests.support.races import races
from tests.support.releases import _own_storage, closed, people, released  # noqa: F401
from tests.support.zenodo import zenodo_server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def nli(db):
    """An open round with the texts of its examples."""
    round = RoundFactory()
    ContextFactory.create_batch(3, round=round)
    return round


def test_a_release_is_published_once(closed, settings, at_once):
    """A conditional update; without it each of them makes a draft with a DOI of its own."""
    released(closed)

    def publish(_):
        try:
            call_command("publish", "nli", 1, to="zenodo", stdout=StringIO())
        except CommandError:
            return 0
        return 1

    for _ in races(5):
        with zenodo_server() as zenodo:
            settings.ZENODO_URL, settings.ZENODO_TOKEN = zenodo.url, zenodo.token
            assert sum(at_once(publish, range(4))) >= 1
            assert [record["submitted"] for record in zenodo.records.values()] == [True]
            assert len(zenodo.uploads) == len(set(zenodo.uploads))
        Publication.objects.all().delete()
