"""Reads whose SQL is built once find what the queryset that they are made of finds."""

import threading

import pytest
from django.db import connection
from django.db.models import CharField, UUIDField

from annotation.models import Example
from core.data.prepared import PreparedRead, Slot
from tasks.models import Task
from tests.support.judging import write

pytestmark = pytest.mark.django_db


def fields(row):
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.fixture
def example(nli, bob):
    return write(nli, bob)


def test_a_read_finds_whole_objects_with_their_related_objects(example, django_assert_num_queries):
    found = Example.objects.select_related("round__round_policy", "context", "consensus")
    read = PreparedRead(lambda: found.filter(uuid=Slot("uuid", UUIDField())))
    read.first(uuid=example.uuid)
    with django_assert_num_queries(1):
        row = read.get(uuid=example.uuid)
        related = row.round, row.context
        assert not hasattr(row, "consensus")  # nobody has judged it: that takes no query either
    expected = found.get(uuid=example.uuid)
    assert fields(row) == fields(expected)
    assert [fields(one) for one in related] == [fields(expected.round), fields(expected.context)]
    assert not row._state.adding


def test_each_call_gives_values_of_its_own(example, alice):
    other = write(example.round, alice)
    read = PreparedRead(
        lambda: Example.objects.filter(round__task=Slot("task"), pk=Slot("example"))
    )
    task = example.round.task_id
    for one in (example, other):
        assert read.first(task=task, example=one.pk) == one
    assert read.first(task=task + 1, example=other.pk) is None
    with pytest.raises(Example.DoesNotExist):
        read.get(task=task + 1, example=other.pk)


def test_a_forgotten_value_is_no_query(example):
    read = PreparedRead(lambda: Task.objects.filter(code=Slot("code", CharField())))
    with pytest.raises(KeyError):
        read.first(name="nli")


def test_the_sql_is_built_once_for_each_connection(example):
    built = []

    def queryset():
        built.append(threading.current_thread())
        return Task.objects.filter(code=Slot("code", CharField()), is_visible=True)

    read = PreparedRead(queryset)
    for _ in range(3):
        assert read.fetch_rows(code=example.round.task.code) == [example.round.task]
    assert len(built) == 1

    def ask():
        read.fetch_rows(code="elsewhere")
        connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert built[1:] == [thread]
