"""Contexts drawn by expected information: stored probabilities, and rates weighted back."""

import json
from math import fsum

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.context_picking.services import assign
from annotation.models import Assignment, Example
from annotation.refusals import NoContext
from annotation.rules.context_draw import CellEvidence, compute_cell_probabilities
from core.accounts.services import get_annotator
from evaluation.dataset_releases.rows import Freezer
from tasks.models import TaskMember
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.judging import decide_many, write, write_many
from tests.support.writing import NLI_PROB, URL, open_form
from tests.web.conftest import HTMX
from validation.consensus.consensus import Policy
from validation.decisions.policy_preview import preview_policy
from validation.models import Validation
from validation.statistics.counts import count_cells
from validation.statistics.report import compute_headline_numbers


@pytest.fixture
def owner(nli):
    """An owner of the task."""
    person = UserFactory()
    TaskMember.objects.create(task=nli.task, user=person, role=TaskMember.Role.OWNER)
    return person


@pytest.fixture
def as_owner(client, owner):
    client.force_login(owner)
    return client


@pytest.fixture
def drawing(nli):
    """The task's round, whose contexts are drawn by information."""
    nli.task.config_text += "\ncontext_picking: information\n"
    nli.task.save()
    return nli


def add_contexts(round, **counts):
    for tag, count in counts.items():
        for _ in range(count):
            ContextFactory(round=round, tag=tag)


def test_the_probability_is_stored_with_what_was_given(drawing, alice, owner):
    drawing.contexts.all().delete()
    add_contexts(drawing, known=4, new=2)
    examples = write_many(drawing, owner, ["fooled", *["not_fooled"] * 9, "fooled"])
    decide_many(examples[:10], ["neutral"] * 10, owner)
    evidence = {"known": CellEvidence(errors=1, right=9, pending=1)}
    shares = compute_cell_probabilities({"known": 4, "new": 2}, evidence)
    assignment = assign(annotator=get_annotator(alice), round=drawing)
    tag = assignment.context.tag
    assert assignment.context_choices == 6
    expected = shares[tag] / {"known": 4, "new": 2}[tag]
    assert assignment.context_probability == pytest.approx(expected)


def test_the_least_used_context_was_not_drawn(nli, alice):
    assignment = assign(annotator=get_annotator(alice), round=nli)
    assert assignment.context_probability is None
    assert assignment.context_choices is None


def test_who_asks_for_another_text_gets_another_one(drawing, alice):
    annotator = get_annotator(alice)
    drawing.contexts.all().delete()
    add_contexts(drawing, a=2)
    ContextFactory(round=drawing, tag="a", is_retired=True)
    first = assign(annotator=annotator, round=drawing)
    assert (first.context_choices, first.context_probability) == (2, 0.5)
    for _ in range(5):
        second = assign(annotator=annotator, round=drawing, is_fresh=True)
        assert second.context_id != first.context_id
        assert (second.context_choices, second.context_probability) == (1, 1)
        assert not second.context.is_retired
        first = second
    drawing.contexts.exclude(pk=first.context_id).update(is_retired=True)
    assert assign(annotator=annotator, round=drawing, is_fresh=True).context == first.context
    drawing.contexts.update(is_retired=True)
    with pytest.raises(NoContext):
        assign(annotator=annotator, round=drawing, is_fresh=True)


def test_an_example_keeps_how_its_context_was_drawn(drawing, as_alice):
    scripted_target(drawing, output={"label": "entailment"}, prob=NLI_PROB)
    as_alice.post(URL, open_form(as_alice), **HTMX)
    example, assignment = Example.objects.get(), Assignment.objects.get()
    assert example.context_choices == assignment.context_choices == drawing.contexts.count()
    assert example.context_probability == assignment.context_probability > 0


@pytest.mark.parametrize("size", [1, 40])
def test_a_draw_makes_as_many_queries_in_a_large_round(drawing, alice, owner, size):
    for tag in ("a", "b", "c"):
        add_contexts(drawing, **{tag: size})
    examples = write_many(drawing, owner, ["fooled"] * size)
    decide_many(examples, ["neutral"] * size, owner)
    cache.clear()
    with CaptureQueriesContext(connection) as queries:
        assign(annotator=get_annotator(alice), round=drawing)
    assert len(queries) == 12


def write_drawn(round, owner, authors=6):
    """Decided examples of several authors, of whom each was given likely and unlikely contexts."""
    for number in range(authors):
        outcomes = ["fooled", "fooled", "not_fooled", "not_fooled"]
        examples = write_many(round, UserFactory(), outcomes[: 2 + number % 3])
        for example, probability in zip(examples, (0.4, 0.02, 0.05, 0.3), strict=False):
            example.context_probability, example.context_choices = probability, 10
            example.save()
            Validation.objects.create(
                example=example, validator=get_annotator(owner), label="neutral"
            )
        decide_many(
            examples, ["neutral", "contradiction", "neutral", "neutral"][: len(examples)], owner
        )
    return Example.objects.filter(round=round)


def compute_hajek(examples, is_counted):
    weights = [1 / (one.context_probability * one.context_choices) for one in examples]
    counted = [is_counted(one) for one in examples]
    return fsum(w for w, is_true in zip(weights, counted, strict=True) if is_true) / fsum(weights)


def test_rates_are_weighted_back_everywhere(nli, owner, few_are_enough):
    examples = list(write_drawn(nli, owner).select_related("consensus"))
    mer = compute_hajek(examples, lambda one: one.outcome == "fooled")
    vmer = compute_hajek(examples, lambda one: one.consensus.is_validated_error)
    numbers = compute_headline_numbers(count_cells([nli]).get_or_create_part(nli.pk, ""))
    assert numbers["collected"] == len(examples)
    assert (numbers["mer"].method, numbers["mer"].clusters) == ("hajek", 6)
    assert numbers["mer"].value == pytest.approx(mer)
    assert numbers["vmer"].value == pytest.approx(vmer)
    assert numbers["vmer"].low < vmer < numbers["vmer"].high
    assert mer != pytest.approx(numbers["fooled"] / numbers["collected"], abs=0.01)
    preview = preview_policy(nli, Policy("n-equal", 1))
    assert preview.before["vmer"].value == pytest.approx(vmer)


def test_reports_and_pages_say_that_rates_are_weighted(
    nli, owner, as_owner, few_are_enough, capsys
):
    page = as_owner.get("/own/nli/").text
    assert 'id="weighted"' not in page
    examples = list(write_drawn(nli, owner))
    mer = compute_hajek(examples, lambda one: one.outcome == "fooled")
    cache.clear()
    call_command("task_report", "nli", "--json")
    body = json.loads(capsys.readouterr().out)
    for row in (body["rounds"][0], body["all"]):
        assert row["mer"]["method"] == "hajek"
        assert row["mer"]["value"] == pytest.approx(mer)
    assert 'id="weighted"' in as_owner.get("/own/nli/").text
    assert 'id="weighted"' in as_owner.get("/t/nli/data/").text


def test_examples_that_nobody_drew_weigh_one(nli, alice, bob):
    drawn, other = write(nli, alice, 1), write(nli, bob, 2, "not_fooled")
    Example.objects.filter(pk=drawn.pk).update(context_probability=0.5, context_choices=8)
    part = count_cells([nli]).get_or_create_part(nli.pk, "")
    weights = {author.fooled: author.collected for author in part.list_author_weights()}
    assert weights == pytest.approx({0.25: 0.25, 0: 1})
    assert compute_headline_numbers(part)["mer"].value == pytest.approx(0.2)
    Example.objects.filter(pk=other.pk).update(retracted_at="2026-01-01T00:00Z")
    part = count_cells([nli]).get_or_create_part(nli.pk, "")
    assert compute_headline_numbers(part)["mer"].value == 1


def test_rates_of_a_person_say_that_they_are_not_weighted(drawing, as_owner, alice):
    write(drawing, alice)
    assert 'id="unweighted"' in as_owner.get("/own/nli/annotators/").text


def test_released_rows_have_the_probability(nli, owner, few_are_enough):
    examples = write_drawn(nli, owner, authors=1)
    chunks = Freezer(nli).iterate_chunks(examples.order_by("pk"))
    rows = [frozen.row for chunk in chunks for frozen in chunk]
    found = {row["uid"]: (row["context_probability"], row["context_choices"]) for row in rows}
    assert found == {
        str(one.uuid): (one.context_probability, one.context_choices) for one in examples
    }
