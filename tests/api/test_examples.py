"""Lists of examples and votes: one's own, and a round's for members; nobody learns who wrote."""

import pytest

from annotation.models import Example
from core.accounts.models import Annotator
from core.accounts.people import get_shown_name
from core.accounts.services import get_annotator
from tasks.models import Round, TaskMember
from tests.support.api_writing import configure, error
from tests.support.factories import ContextFactory
from tests.support.judging import answered, write
from tests.support.query_counts import check, count
from validation.decisions.consensus_rows import derive_consensus
from validation.models import Validation

OWN = "/api/v1/me/examples/"
EXAMPLES = "/api/v1/tasks/nli/rounds/1/examples/"
VOTES = "/api/v1/tasks/nli/rounds/1/validations/"


@pytest.fixture
def member(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="viewer")
    return api


def vote(example, user, label="neutral", **more):
    Validation.objects.create(
        example=example,
        validator=get_annotator(user),
        author_id=example.annotator_id,
        label=label,
        **more,
    )
    derive_consensus(example, list(example.validations.all()))


def found(client, url, **filters):
    response = client.get(url, filters)
    assert response.status_code == 200, response.content
    return response.json()["results"]


def test_ones_own_examples_come_newest_first(api, alice, bob, nli, qa):
    first, second = write(nli, alice), write(nli, alice, 1, outcome="not_fooled")
    write(nli, bob, 2)
    vote(first, bob)
    rows = found(api, OWN)
    assert [row["id"] for row in rows] == [str(second.uuid), str(first.uuid)]
    assert rows[0]["consensus"] is None
    judged = rows[1]["consensus"]
    assert (judged["state"], judged["votes"], judged["label"]) == ("undecided", 1, "")
    assert rows[1]["annotator"] == get_annotator(alice).pseudonym
    assert len(found(api, OWN, outcome="not_fooled")) == 1
    assert found(api, OWN, task="qa") == []
    assert api.get(OWN, {"outcome": "x"}).status_code == 422


def test_an_example_is_read_by_its_author_and_by_members(api, bobs, alice, bob, nli):
    configure(nli.task, "show_confidence: hidden", "show_confidence: full")
    Round.objects.update(show_target_name=False)
    example = write(nli, bob)
    answered(example)
    url = f"/api/v1/examples/{example.uuid}/"
    assert api.get(url).status_code == 404
    (own,) = bobs.get(url).json()["answers"]
    assert (own["target"], own["prob"]) == ("Model A", None)
    TaskMember.objects.create(task=nli.task, user=alice, role="viewer")
    (seen,) = api.get(url).json()["answers"]
    assert (seen["target"], seen["prob"]["entailment"]) == (f"target-{example.pk}", 0.9)


def test_a_round_is_for_members(api, anybody, nli):
    for url in (EXAMPLES, VOTES):
        assert anybody.get(url).status_code == 401
        assert api.get(url).status_code == 404


def test_a_rounds_examples_by_filter(member, alice, bob, nli):
    mine, other = write(nli, alice), write(nli, bob, 1, outcome="not_fooled")
    gone = write(nli, bob, 2)
    Example.objects.filter(pk=gone.pk).update(retracted_at=gone.created_at or "2026-01-01T00:00Z")
    Example.objects.filter(pk=other.pk).update(by_program=True)
    vote(mine, bob)
    both = [str(mine.uuid), str(other.uuid)]
    assert [row["id"] for row in found(member, EXAMPLES)] == both
    for filters, expected in [
        ({"outcome": "fooled"}, both[:1]),
        ({"state": "undecided"}, both[:1]),
        ({"state": "unjudged"}, both[1:]),
        ({"label": "neutral"}, both),
        ({"label": "entailment"}, []),
        ({"annotator": get_annotator(bob).pseudonym}, both[1:]),
        ({"by_program": "true"}, both[1:]),
        ({"by_program": "false"}, both[:1]),
    ]:
        assert [row["id"] for row in found(member, EXAMPLES, **filters)] == expected, filters


@pytest.mark.parametrize(
    "filters", [{"state": "x"}, {"by_program": "perhaps"}, {"label": "\x00"}, {"annotator": "\x00"}]
)
def test_a_filter_that_does_not_exist(member, filters):
    fields = error(member.get(EXAMPLES, filters), 422, "invalid")["fields"]
    assert list(fields) == list(filters)


def test_pages_go_on_where_they_were(member, alice, nli):
    ids = [str(write(nli, alice, number).uuid) for number in range(3)]
    first = member.get(EXAMPLES, {"page_size": 2}).json()
    second = member.get(first["next"]).json()
    assert [row["id"] for row in first["results"] + second["results"]] == ids
    assert second["next"] is None


def test_imported_people_and_what_lies_beside_a_text_stay_here(member, nli):
    worker = Annotator.objects.create(pseudonym="mturk:A1SECRETWORKER", source="import")
    example = write(
        nli, _user(worker), hypothesis="It is.", label="neutral", worker="A1SECRETWORKER"
    )
    example.metadata = {"worker_id": "A1SECRETWORKER"}
    example.save()
    context = example.context
    context.fields = {**context.fields, "hit": "A1SECRETWORKER"}
    context.save()
    Validation.objects.create(example=example, validator=None, label="neutral", is_imported=True)
    other = write(nli, _user(worker), 2)
    Validation.objects.create(
        example=other,
        validator=worker,
        label="neutral",
        is_imported=True,
        metadata={"worker": "A1SECRETWORKER"},
    )
    rows, cast = member.get(EXAMPLES), member.get(VOTES)
    assert rows.json()["results"][0]["annotator"] == get_shown_name(worker)
    assert [row["validator"] for row in cast.json()["results"]] == [
        "unknown",
        get_shown_name(worker),
    ]
    assert b"SECRET" not in rows.content + cast.content
    assert found(member, EXAMPLES, annotator=worker.pseudonym) == []


def _user(annotator):
    """Stands for a user where `write` asks for one."""

    class Somebody:
        pass

    somebody = Somebody()
    somebody.annotator = annotator
    return somebody


def test_a_rounds_votes(member, alice, bob, nli):
    first, second = write(nli, alice), write(nli, alice, 1)
    vote(first, bob, seconds=3.5)
    vote(second, bob, by_program=True)
    rows = found(member, VOTES)
    assert [row["example"] for row in rows] == [str(first.uuid), str(second.uuid)]
    assert (rows[0]["vote"], rows[0]["validator"], rows[0]["seconds"]) == (
        "label:neutral",
        get_annotator(bob).pseudonym,
        3.5,
    )
    assert [row["by_program"] for row in rows] == [False, True]
    assert len(found(member, VOTES, by_program="true")) == 1
    assert len(found(member, VOTES, example=str(first.uuid))) == 1


PAGES = {"API own examples": OWN, "API round examples": EXAMPLES, "API round votes": VOTES}


@pytest.mark.parametrize("page", PAGES)
def test_query_count(page, member, alice, bob, nli):
    def rows(first, last):
        for number in range(first, last):
            example = write(nli, alice, number)
            example.context = ContextFactory(round=nli)
            example.save()
            vote(example, bob)

    rows(0, 1)
    answered(Example.objects.get())
    few = count(member, PAGES[page])
    rows(1, 5)
    assert count(member, PAGES[page]) == few
    check(page, few)


@pytest.mark.parametrize(
    "url",
    [
        "tasks/nli/rounds/99999999999999999999/examples/",
        "examples/x/",
        "tasks/x/rounds/1/validations/",
    ],
)
def test_what_is_not_there(member, url):
    assert member.get(f"/api/v1/{url}").status_code == 404
