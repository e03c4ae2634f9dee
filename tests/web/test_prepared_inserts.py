"""Inserts whose SQL is built once store what Django's own would."""

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from core.accounts.services import get_annotator
from core.data.prepared_insert import PreparedInsert
from tests.support.factories import UserFactory
from tests.support.judging import write
from validation.models import Consensus, Validation

pytestmark = pytest.mark.django_db


def fields(row):
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def vote(example, person, **values):
    values = {"label": "neutral", "created_at": timezone.now(), "by_program": False, **values}
    return Validation(
        example=example,
        author_id=example.annotator_id,
        validator=get_annotator(person),
        metadata={"why": ["Grüße", None, 'a "quote"']},
        seconds=2.5,
        **values,
    )


def test_a_row_is_stored_as_django_stores_it(nli, bob, alice, django_assert_num_queries):
    example = write(nli, bob)
    insert = PreparedInsert(Validation)
    ours, plain = vote(example, alice), vote(example, UserFactory())
    insert.insert(ours)
    plain.save()
    assert fields(Validation.objects.get(pk=ours.pk)) == fields(ours)
    differs = {"id", "validator_id", "created_at"}
    kept = [{n: v for n, v in fields(row).items() if n not in differs} for row in (ours, plain)]
    assert kept[0] == kept[1]
    other = vote(write(nli, bob, 1), alice, label="", verdict="cannot_tell")
    with django_assert_num_queries(1):
        insert.insert(other)
    assert fields(Validation.objects.get(pk=other.pk)) == fields(other)
    other.comment = "changed"
    other.save()  # it is known to be stored: a second insert would break a rule
    assert Validation.objects.count() == 3


def test_the_database_refuses_what_its_rules_forbid(nli, bob, alice):
    example = write(nli, bob)
    insert = PreparedInsert(Validation)
    insert.insert(vote(example, alice))
    for wrong in (vote(example, alice), vote(example, bob)):
        with pytest.raises(IntegrityError), transaction.atomic():
            insert.insert(wrong)


def test_a_row_that_is_there_is_updated_in_the_named_fields(nli, bob):
    example = write(nli, bob)
    insert = PreparedInsert(Consensus, unique_fields=["example"], update_fields=["votes", "state"])
    for votes, still_needed in [(1, 2), (2, 1)]:
        insert.insert(
            Consensus(
                example=example,
                round_id=example.round_id,
                votes=votes,
                still_needed=still_needed,
                is_sent_back=False,
            )
        )
    (stored,) = Consensus.objects.all()
    assert (stored.votes, stored.still_needed) == (2, 2)
