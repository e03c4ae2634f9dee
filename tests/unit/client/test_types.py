"""The types of the client are those of the API.

After a wanted change: ./test --update schema
"""

from drf_spectacular.generators import SchemaGenerator

from scripts.client_types import TYPES, made
from tests.support.snapshots import compare_with_file


def test_they_are_those_of_the_schema():
    true = made(SchemaGenerator(api_version="v1").get_schema(public=True))
    compare_with_file(TYPES, true)
