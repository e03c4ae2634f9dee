"""Real threads on a real PostgreSQL: SQLite lets one writer in at a time and hides the races."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if "tests/concurrency/" in str(item.path):
            item.add_marker(pytest.mark.postgres)


@pytest.fixture
def at_once():
    """Call a function with each argument in a thread of its own, all at the same instant.

    Each waits for locks longer than a request would: on a busy machine many stand in line.
    """

    def run(function: Callable, arguments: Iterable) -> list:
        arguments = list(arguments)
        barrier = threading.Barrier(len(arguments), timeout=60)

        def call(argument):
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '60s'")
            barrier.wait()
            try:
                return function(argument)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(len(arguments)) as pool:
            return list(pool.map(call, arguments))

    return run
