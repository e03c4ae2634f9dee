"""A stranger reads sealed texts and right answers out of the help with writing, and does not.

"Examples that worked" chose among all verified examples of the task, and "change somebody's
example" among those of the open round. Sixty views gave all rows that a release holds back and
half of its private test split, with their answers.
"""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest

from annotation.aids import example_gallery
from annotation.answers import filter_open_answers, may_see_answer
from annotation.context_picking import selectors
from annotation.models import Assignment, Example
from core.accounts.models import Annotator, User
from core.accounts.services import get_annotator
from evaluation.models import DatasetItem
from tasks.models import Round, TaskMember
from tests.support.factories import ContextFactory, UserFactory
from tests.support.judging import write
from tests.support.releases import _own_storage, closed, people, released  # noqa: F401
from tests.support.writing import open_form, signed_in
from tests.support.writing_aids import earlier_round, next_round
from tests.web.conftest import HTMX

VIEWS = 60
WRITE = "/t/nli/write/"
ASSIGNMENT = "/api/v1/tasks/nli/assignment/"
JSON = {"content_type": "application/json"}


@pytest.fixture
def release(closed, monkeypatch):
    """Round 1 with a private test split and a fifth held back; round 2 is open."""
    monkeypatch.setattr(example_gallery, "MAX_PER_DAY", 10_000)
    task = closed.task
    task.config_text = task.config_text.replace(
        "\nsupport:\n", "\nsupport:\n  minimal_edit: true\n"
    )
    task.save()
    assert task.config.support.minimal_edit
    dataset = released(closed, dev=4, test=8, private_test=True, hold_back=True)
    later = next_round(closed)
    ContextFactory.create_batch(3, round=later)
    write(later, UserFactory(), hypothesis="Of the open round.", label="neutral")
    return dataset


def texts_of(release, *splits):
    """What was written in the rows of these splits."""
    rows = Example.objects.filter(dataset_items__dataset=release, dataset_items__split__in=splits)
    return {one.inputs["hypothesis"] for one in rows}


def read_in(page, texts):
    """Those of the texts that stand in a page."""
    return {one for one in texts if one.replace("’", "&#x27;") in page}


def test_sixty_views_of_examples_that_worked_find_nothing_sealed(release):
    sealed = texts_of(release, "test", "held", "dev") | {"Of the open round."}
    public, found = texts_of(release, "train"), set()
    assert len(sealed) > 15
    stranger = signed_in(UserFactory())
    for _ in range(VIEWS):
        page = stranger.post(f"{WRITE}support/", open_form(stranger) | {"want": "examples"}, **HTMX)
        assert page.status_code == 200
        assert not read_in(page.text, sealed)
        found |= read_in(page.text, public)
        stranger.post(f"{WRITE}next/", {"want": "context"}, **HTMX)
    assert found  # the help is there: what it shows is published


def test_examples_to_change_are_never_sealed(release, client):
    sealed = texts_of(release, "test", "held", "dev") | {"Of the open round."}
    stranger = signed_in(UserFactory())
    for _ in range(VIEWS // 2):
        stranger.post(f"{WRITE}next/", {"want": "edit"}, **HTMX)
        page = stranger.get(WRITE)
        assert page.context["parent_verdict"]
        assert not read_in(page.text, sealed)
    parents = Assignment.objects.filter(parent__isnull=False).values("parent")
    rows = DatasetItem.objects.filter(example__in=parents)
    assert {*rows.values_list("split", flat=True)} == {"train"}


def test_the_least_changed_of_a_few_is_changed_next_and_all_have_their_turn(release, monkeypatch):
    """Few rows are read while the round is locked; none of one's own, none that is an edit."""
    rows = Example.objects.filter(dataset_items__split="train")
    mine, edit, *_others = rows
    author = User.objects.create_user(email="mine@example.com", password=None)
    Annotator.objects.filter(pk=mine.annotator_id).update(user=author)
    Example.objects.filter(pk=edit.pk).update(parent=mine)
    later = Round.objects.get(number=2)
    free = rows.exclude(annotator=mine.annotator).exclude(pk=edit.pk)
    monkeypatch.setattr(selectors, "MAX_PARENTS", 3)
    found = {selectors.draw_parent(get_annotator(author), later).pk for _ in range(300)}
    assert found == {*free.values_list("pk", flat=True)}
    monkeypatch.setattr(selectors, "MAX_PARENTS", 10**4)
    Example.objects.filter(round=later).delete()
    least = free.last()
    for number, parent in enumerate(free.exclude(pk=least.pk)):
        write(later, UserFactory(), number)
        Example.objects.filter(round=later, digest=str(number)).update(parent=parent)
    assert selectors.draw_parent(get_annotator(author), later) == least


def test_without_a_released_row_nothing_is_offered_to_change(nli, bob):
    assert selectors.draw_parent(get_annotator(bob), nli) is None
    earlier_round(nli)
    Round.objects.filter(number=0).update(state="released")
    assert selectors.draw_parent(get_annotator(bob), nli) is None


def test_an_example_to_change_that_was_given_earlier_is_shown_no_more(release):
    """Assignments of the time before may name a row that is sealed."""
    held = Example.objects.filter(dataset_items__split="held").first()
    stranger = signed_in(UserFactory())
    stranger.get(WRITE)
    Assignment.objects.update(parent=held, worked=[held.pk])
    page = stranger.get(f"{WRITE}?support=examples")
    assert page.context["parent_verdict"] is None
    told = stranger.post(ASSIGNMENT, {"want": "current"}, **JSON).json()
    assert told["parent"] is None
    for answer in (page.text, str(told)):
        assert not read_in(answer, {held.inputs["hypothesis"]})


def test_who_may_see_which_answer(release):
    example = {
        split: Example.objects.filter(dataset_items__split=split).first()
        for split in ("train", "dev", "test", "held")
    }
    open_ones = filter_open_answers(Example.objects.all())
    splits = DatasetItem.objects.filter(example__in=open_ones).values_list("split", flat=True)
    assert {*splits} == {"train"}
    stranger, reader, judge = UserFactory.create_batch(3)
    author = User.objects.create_user(email="author@example.com", password=None)
    for member, role in ((reader, "viewer"), (judge, "judge")):
        TaskMember.objects.create(task=release.round.task, user=member, role=role)
    example["held"].annotator.user = author
    example["held"].annotator.save()
    for person in (None, stranger, judge, author, reader):
        seen = {split for split, one in example.items() if may_see_answer(person, one)}
        own = {"held"} if person == author else set()
        assert seen == ({*example} if person == reader else {"train"} | own), person
