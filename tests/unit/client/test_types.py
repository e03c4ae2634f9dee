"""The types of the client are those of the API.

After a wanted change: UPDATE_SCHEMA=1 ./test unit/client/test_types.py
"""

import os

from drf_spectacular.generators import SchemaGenerator

from scripts.client_types import TYPES, made

HOW = "dynabench/client/types.py has drifted: UPDATE_SCHEMA=1 ./test unit/client/test_types.py"


def test_they_are_those_of_the_schema():
    true = made(SchemaGenerator(api_version="v1").get_schema(public=True))
    if os.environ.get("UPDATE_SCHEMA"):
        TYPES.write_text(true)
    assert TYPES.read_text() == true, HOW
