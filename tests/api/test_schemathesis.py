"""Odd requests to every address of the API: no error of ours, each answer as the schema says.

What exists is asked for most of the time, as the owner of the task; what a request changed is
undone after it.
"""

import zlib
from itertools import islice

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from core.accounts.tokens import create_token
from core.web.throttles import ScopeThrottle
from dynabench.wsgi import application
from tests.api.world import SCOPES, World, make_world
from tests.conftest import EXAMPLES, SEED, at_night

KNOWN_IN = 4  # of so many requests all but one name what exists
MOST_LIMITS = 10 if at_night("fuzz") else 5  # requests an operation
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
fuzzed = settings(
    max_examples=max(3, EXAMPLES // 20),
    derandomize=not SEED,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def schema():
    made = schemathesis.openapi.from_dict(SchemaGenerator(api_version="v1").get_schema(public=True))
    made.app = application
    return made


@pytest.fixture
def world(db, settings, tmp_path, monkeypatch):
    """It lasts for a test: no request ends the transaction, as in Django's own client."""
    settings.MEDIA_ROOT = tmp_path
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    monkeypatch.setattr(ScopeThrottle, "allow_request", lambda self, request, view: True)
    yield make_world()
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def known(world: World, case) -> dict[str, str]:
    """The path parameters of a case, which name what exists most of the time."""
    asked = dict(case.path_parameters or {})
    dice = zlib.crc32(repr(asked).encode())
    if dice % KNOWN_IN == 0:
        return asked
    parts = case.operation.path.split("/")
    for place, part in enumerate(parts):
        if part.startswith("{") and (ids := world.known(parts, place)):
            asked[part[1:-1]] = str(ids[dice % len(ids)])
    return asked


@pytest.fixture
def answers_as_told(world):
    """Sends a case with a token that may do everything, checks the answer, undoes what it did."""
    key = create_token(user=world.owner, name="fuzz", scopes=SCOPES, days=1)[1]

    def check(case):
        case.path_parameters = known(world, case)
        with transaction.atomic():
            response = case.call(headers={"Authorization": f"Bearer {key}"})
            transaction.set_rollback(True)
        case.validate_response(response, checks=CHECKS)

    return check


def problems_of(schema, check):
    """What `check` finds at each operation."""
    for operation in (found.ok() for found in schema.get_all_operations()):
        try:
            check(operation)
        except (Exception, FailureGroup) as error:
            yield f"{operation.label}: {error}"


@pytest.mark.parametrize("mode", GenerationMode)
def test_odd_requests_are_answered_as_the_schema_says(schema, answers_as_told, mode):
    """By day a third of the operations get right ones, a third wrong ones: drawing takes long."""
    modes = [*GenerationMode, None]

    def check(operation):
        turn = modes[zlib.crc32(operation.label.encode()) % len(modes)]
        if mode is not turn and not at_night("fuzz"):
            return
        cases = operation.as_strategy(generation_mode=mode)
        try:
            fuzzed(given(case=cases)(answers_as_told))()
        except Unsatisfiable:  # a request that only names what is there cannot be wrong
            assert mode is GenerationMode.NEGATIVE
            assert {} in operation.definition.raw["security"]

    assert not (problems := list(problems_of(schema, check))), "\n\n".join(problems)


def test_the_limits_of_each_value_are_answered_as_the_schema_says(schema, answers_as_told):
    """The least and the most of each value, one more, another type, nothing; other methods."""

    def check(operation):
        cases = schema.iter_coverage_cases(
            operation,
            generation_modes=list(GenerationMode),
            generation_config=schema.config.generation_for(operation=operation),
        )
        for case in islice(cases, MOST_LIMITS):
            answers_as_told(case)

    assert not (problems := list(problems_of(schema, check))), "\n\n".join(problems)


def test_what_exists_is_asked_for(schema, world):
    """An address that was renamed is missed here."""
    parts = {part for path in schema for part in path.split("/")}
    assert set(world.ids) - {"task-invitations"} <= parts  # which `World.known` tells from a team's
