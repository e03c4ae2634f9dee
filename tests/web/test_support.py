"""Help with writing: examples that worked, and challenges."""

import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from annotation.aids import example_gallery
from annotation.aids.example_gallery import choose_gallery_examples, list_gallery_examples
from annotation.aids.registry import Aid
from annotation.context_picking import challenges
from annotation.context_picking.services import assign
from annotation.models import Assignment, Attempt, Example, ShownExample
from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from core.data import adaptive_cache
from evaluation.models import Dataset, DatasetItem
from tasks.models import Round
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.guide import registered_for_now
from tests.support.judging import answered
from tests.support.writing import open_form
from tests.support.writing_aids import earlier_round, publish, released_example, worked_example
from tests.web.conftest import HTMX
from validation.judging import gold
from validation.models import Consensus

URL = "/t/nli/write/support/"
WANT = {"want": "examples"}


@pytest.fixture
def mine(alice, nli):
    """What Alice works on: the first context."""
    assignment = assign(annotator=get_annotator(alice), round=nli)
    assignment.context = nli.contexts.first()
    assignment.save()
    return assignment


def texts(assignment):
    assignment.worked = None
    choose_gallery_examples(assignment)
    return {
        words for one in list_gallery_examples(assignment) for name, words in one.written_fields[:1]
    }


def test_examples_come_when_they_are_asked_for(as_alice, mine, nli):
    example = worked_example(earlier_round(nli))
    answered(example)
    publish(example)
    assert 'value="examples"' in as_alice.get("/t/nli/write/").text
    assert "idea." not in as_alice.get("/t/nli/write/?support=examples").text
    form = open_form(as_alice, text="Half a text")
    page = as_alice.post(URL, form | WANT, follow=True)
    part = as_alice.post(URL, form | WANT, **HTMX)
    for response in (page, part):
        assert response.status_code == 200
        found = response.text
        assert "Bob&#x27;s idea." in found
        assert nli.task.config.display("label", "neutral") in found
        assert re.search(r"</dt><dd[^>]*>definitely true<", found)
        assert nli.contexts.last().fields["premise"] in found
        assert "secret-7" not in found
        assert "w-0" not in found
    assert "<html" not in part.text
    assert '<ol class="worked">' in part.text
    assert page.redirect_chain[-1][0].endswith("/t/nli/write/?support=examples")
    assert "Half a text</textarea>" in page.text  # what was typed is there still
    mine.refresh_from_db()
    assert mine.worked == [Example.objects.get().pk]
    shown = ShownExample.objects.get()
    assert (shown.annotator, shown.example, shown.way) == (
        mine.annotator,
        Example.objects.get(),
        "gallery",
    )


def test_only_valid_ones_of_others_about_other_contexts(mine, nli, alice, bob):
    same = earlier_round(nli).contexts.get(digest=mine.context.digest)
    released_example(nli, text="It may be shown.")
    released_example(nli, author=get_annotator(alice), text="My own.")
    released_example(nli, context=same, text="About this context.")
    released_example(nli, text="A program's.", by_program=True)
    released_example(nli, text="Retracted.", retracted_at=timezone.now())
    known = released_example(nli, text="Gold.")
    gold.mark_gold(example=known, owner=bob)
    right = released_example(nli, text="The model was right.")
    Consensus.objects.filter(pk=right.pk).update(is_validated_error=False)
    elsewhere = RoundFactory(task=TaskFactory(code="qa"))
    released_example(elsewhere, context=ContextFactory(round=elsewhere), text="Another task's.")
    assert texts(mine) == {"It may be shown."}


def test_what_an_unknown_author_wrote_may_be_shown(mine, nli):
    example = released_example(nli, text="From a paper.")
    Example.objects.filter(pk=example.pk).update(annotator=None)
    assert texts(mine) == {"From a paper."}


def test_only_released_rounds_before_this_one_help(mine, nli):
    worked_example(nli, text="This round's.")
    nli.number = 9
    nli.save()
    mine.round = nli
    for before in (1, 3, 4, 5):
        released_example(nli, before=before, text=f"{before} before.")
    worked_example(earlier_round(nli, 1), text="In no release.")
    for before, state in ((-1, "released"), (2, "closed")):
        example = released_example(nli, before=before, text=f"{state}.")
        Round.objects.filter(pk=example.round_id).update(state=state)
    assert texts(mine) == {"1 before.", "3 before.", "4 before."}


@pytest.mark.parametrize("split", ["dev", "test", "held", "program"])
def test_a_row_of_another_part_is_sealed_whatever_versions_follow(mine, nli, split):
    example = released_example(nli, text="Also elsewhere.")
    assert texts(mine) == {"Also elsewhere."}
    again = Dataset.objects.create(round=example.round, version=2, state="queued")
    DatasetItem.objects.create(
        dataset=again, position=0, split=split, uid="x", example=example, line="{}"
    )
    assert texts(mine) == set()


def test_a_release_that_failed_publishes_nothing(mine, nli):
    released_example(nli, text="It failed.")
    Dataset.objects.update(state="failed")
    assert texts(mine) == set()


def test_at_most_five_about_as_many_contexts_and_the_same_again(mine, nli):
    contexts = ContextFactory.create_batch(
        example_gallery.MAX_GALLERY_EXAMPLES, round=earlier_round(nli)
    )
    for number in range(20):
        released_example(nli, context=contexts[number % 5], text=f"Idea {number}.")
    choose_gallery_examples(mine)
    chosen = list(mine.worked)
    assert (
        len(Example.objects.filter(pk__in=chosen).values("context").distinct())
        == example_gallery.MAX_GALLERY_EXAMPLES
    )
    released_example(nli, text="A new one.")
    choose_gallery_examples(mine)
    assert mine.worked == chosen
    Example.objects.filter(pk=chosen[0]).update(retracted_at=timezone.now())
    assert len(list_gallery_examples(mine)) == example_gallery.MAX_GALLERY_EXAMPLES - 1


def test_every_example_has_its_turn(nli):
    for number in range(12):
        released_example(nli, text=f"Idea {number}.")
    found = set()
    for number in range(60):
        person = Annotator.objects.create(pseudonym=f"w-turn{number}")
        context = nli.contexts.first()
        one = Assignment.objects.create(annotator=person, round=nli, context=context)
        found |= texts(one)
    assert len(found) == 12


def test_a_person_sees_only_so_many_new_ones_in_a_day(as_alice, mine, nli, monkeypatch):
    monkeypatch.setattr(example_gallery, "MAX_PER_DAY", 7)
    for number in range(12):
        released_example(nli, text=f"Idea {number}.")
    form = open_form(as_alice) | WANT

    def see(status):
        Assignment.objects.update(worked=None)
        assert as_alice.post(URL, form, **HTMX).status_code == status

    see(200)
    monkeypatch.setattr(example_gallery, "MAX_PER_DAY", 5)
    see(429)
    assert ShownExample.objects.count() == 5
    ShownExample.objects.update(shown_at=timezone.now() - timedelta(days=1))
    see(200)


def test_without_any_the_page_says_so_and_looks_again_later(as_alice, mine, nli):
    response = as_alice.post(URL, open_form(as_alice) | WANT, **HTMX)
    assert '<ol class="worked">' not in response.text
    released_example(nli)
    assert "Bob&#x27;s idea." in as_alice.post(URL, open_form(as_alice) | WANT, **HTMX).text


def test_a_sensitive_task_shows_them_behind_the_gate_and_the_shield(as_alice, hate):
    other = ContextFactory(round=earlier_round(hate), fields={"prompt": "The bread was fresh."})
    example = released_example(hate, context=other)
    inputs = {"text": "A hateful idea.", "label": "hate"}
    Example.objects.filter(pk=example.pk).update(inputs=inputs)
    url = "/t/hate-speech/write/support/"
    assert as_alice.post(url, WANT).url.endswith("/gate/")
    as_alice.post("/t/hate-speech/gate/")
    form = open_form(as_alice, "/t/hate-speech/write/")
    Assignment.objects.update(context=hate.contexts.first())
    found = as_alice.post(url, form | WANT, **HTMX).text
    assert "A hateful idea." in found
    assert "hateful idea" not in re.sub(
        r'<details class="shield">.*?</details>', "", found, flags=re.S
    )
    assert "The bread was fresh." not in found  # a prompt is not read


def test_who_may_not_and_what_is_not_allowed_is_not_found(as_alice, client, bob, mine, nli):
    form = open_form(as_alice)
    assert as_alice.post(URL, form | {"want": "money"}).status_code == 404
    assert as_alice.get(URL).status_code == 405
    task = nli.task
    task.config_text = task.config_text.replace("  examples: true\n", "")
    task.save()
    assert as_alice.post(URL, form | WANT).status_code == 404
    assert "See examples" not in as_alice.get("/t/nli/write/").text
    client.force_login(bob)
    assert client.post(URL, form | WANT).status_code == 404
    client.logout()
    assert client.post(URL, form | WANT, **HTMX).status_code == 401


def test_a_passer_by_is_offered_no_help(client, nli):
    scripted_target(nli, label="entailment")
    page = client.get("/t/nli/try/").text
    assert "See examples" not in page
    assert "Challenge:" not in page


def test_looking_at_examples_is_kept_with_what_is_written_next(as_alice, mine, nli):
    scripted_target(nli, label="entailment", prob=None)
    Assignment.objects.update(challenge=None)
    as_alice.post("/t/nli/write/", open_form(as_alice), **HTMX)
    assert Example.objects.get().support is None
    for number in range(2):
        released_example(nli, text=f"Idea {number}.")
    as_alice.post(URL, open_form(as_alice) | WANT, **HTMX)
    as_alice.post("/t/nli/write/", open_form(as_alice, text="With help I wrote it."), **HTMX)
    written = Example.objects.latest("pk")
    assert written.support == Attempt.objects.latest("pk").support == {"examples": 2}


# Challenges


@pytest.mark.parametrize(
    ("ticked", "taken"),
    [({"support-challenge": "on"}, "negation"), ({}, None)],
    ids=["taken", "left"],
)
def test_a_challenge_is_taken_up_or_left(as_alice, mine, nli, ticked, taken):
    scripted_target(nli, label="entailment", prob=None)
    Assignment.objects.update(challenge="negation")
    page = as_alice.get("/t/nli/write/").text
    assert 'name="support-challenge"' in page
    as_alice.post("/t/nli/write/", open_form(as_alice) | ticked, **HTMX)
    example, attempt = Example.objects.get(), Attempt.objects.get()
    assert example.challenge == attempt.challenge == taken
    assert example.support == attempt.support == {"challenge": "negation"}
    retry = as_alice.get(f"/t/nli/write/?retry={example.uuid}").text
    assert bool(re.search(r'name="support-challenge"[^>]* checked', retry)) == bool(taken)


def test_a_tick_survives_a_refused_form(as_alice, mine, nli):
    ticked = open_form(as_alice, text="No") | {"support-challenge": "on"}
    refused = as_alice.post("/t/nli/write/", ticked, **HTMX)
    assert refused.status_code == 422
    assert re.search(r'name="support-challenge"[^>]* checked', refused.text)


def test_a_challenge_that_is_no_more_is_neither_shown_nor_stored(as_alice, mine, nli):
    scripted_target(nli, label="entailment", prob=None)
    Assignment.objects.update(challenge="rhymes")
    assert "Challenge:" not in as_alice.get("/t/nli/write/").text
    forged = open_form(as_alice) | {"support-challenge": "on"}
    as_alice.post("/t/nli/write/", forged, **HTMX)
    example = Example.objects.get()
    assert (example.challenge, example.support) == (None, None)


def offered(round, people=20):
    names = set()
    for person in UserFactory.create_batch(people):
        names.add(assign(annotator=get_annotator(person), round=round).challenge)
    return names


def test_the_challenge_with_the_fewest_verified_examples_comes_first(nli, monkeypatch):
    monkeypatch.setattr(adaptive_cache, "MIN_CACHE_TIME", timedelta(0))
    monkeypatch.setattr(adaptive_cache, "CACHE_TIME_FACTOR", 0)
    assert offered(nli) == {"counting", "negation", "several_steps"}
    for name in ("counting", "counting", "negation"):
        worked_example(nli, challenge=name)
    for hidden in ({"by_program": True}, {"retracted_at": timezone.now()}):
        worked_example(nli, challenge="several_steps", **hidden)
    assert offered(nli, 4) == {"several_steps"}
    for _ in range(2):
        worked_example(nli, challenge="several_steps")
    assert offered(nli, 4) == {"negation"}


def test_the_count_of_challenges_is_kept_a_while(nli, django_assert_num_queries):
    challenges.draw_challenge(nli)
    with django_assert_num_queries(0):
        challenges.draw_challenge(nli)
    cache.clear()
    with django_assert_num_queries(1):
        challenges.draw_challenge(nli)


def test_a_challenge_stays_with_the_passage_and_comes_in_every_way_of_writing(as_alice, nli, bob):
    as_alice.get("/t/nli/write/")
    first = Assignment.objects.get()
    as_alice.get("/t/nli/write/")
    as_alice.post("/t/nli/write/next/", {"want": "goal"})
    assert Assignment.objects.get().challenge == first.challenge
    released_example(nli, author=get_annotator(bob))
    as_alice.post("/t/nli/write/next/", {"want": "edit"})
    current = Assignment.objects.get(left_at__isnull=True)
    assert current.parent
    assert current.challenge


def test_one_class_makes_an_aid_on_the_page(as_alice, nli):
    """Its button, what it gives, and what is shown of it."""
    given = []
    parts = {
        "label": "Draw a word",
        "place": 50,
        "template": "annotation/ideas/_suggestion_or_none.html",
        "is_allowed": lambda self, config: True,
        "provide_help": lambda self, assignment, aid_name, typed: given.append(aid_name),
    }
    with registered_for_now():
        type("Word", (Aid,), parts, name="word")
        assert 'name="want" value="word"' in as_alice.get("/t/nli/write/").text
        form = open_form(as_alice)
        assert as_alice.post(URL, form | {"want": "word"}).status_code == 302
        assert given == ["word"]
    assert as_alice.post(URL, form | {"want": "word"}).status_code == 404
