"""The owners' pages about adversaries."""

import re

import pytest
from django.urls import reverse

from annotation.models import Example, TargetOutput
from dynabench.adversaries.models import Adversary, AdversaryRun, AdversaryTry
from tasks.models import TaskMember
from tests.support.adversaries import (
    SENTENCES,
    make_adversary,
    run_to_its_end,
    sentiment_round,
)
from tests.support.factories import UserFactory
from tests.support.judging import write
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus

pytestmark = pytest.mark.django_db
BUDGET = {"max_calls": 100, "max_examples": 3, "max_minutes": 5}


@pytest.fixture
def scene(client):
    round, owner = sentiment_round()
    client.force_login(owner)
    return round, owner


def address(name, *arguments):
    return reverse(f"own-adversaries:{name}", args=["sentiment", *arguments])


def test_an_owner_creates_starts_and_stops_one(scene, client):
    form = {"name": "Typos", "seed": 3, "options-sentences": SENTENCES, "options-letters": "on"}
    form |= {"options-share": 25, "options-beam": 1, **BUDGET}
    made = client.post(address("make", "search"), form)
    adversary = Adversary.objects.get()
    assert made.headers["Location"] == address("adversary", adversary.pk)
    assert adversary.options["sentences"].splitlines() == SENTENCES.splitlines()
    assert (adversary.options["letters"], adversary.options["words"]) == (True, False)
    assert (adversary.seed, adversary.max_calls) == (3, 100)
    client.post(address("start", adversary.pk))
    assert b'id="stop"' in client.get(address("adversary", adversary.pk)).content
    client.post(address("stop", adversary.pk))
    assert AdversaryRun.objects.get().state == "cancelled"
    assert b'id="start"' in client.get(address("adversary", adversary.pk)).content


def test_errors_are_shown_at_their_fields(scene, client):
    form = {"name": "", "seed": 0, "options-sentences": "glad | We loved it.", "options-beam": 1}
    refused = client.post(address("make", "search"), {**form, **BUDGET, "options-share": 90})
    assert refused.status_code == 422
    assert {*refused.context["form"].errors} == {"name"}
    assert {*refused.context["options_form"].errors} == {"share"}
    form |= {"name": "Typos", "options-share": 25, "options-letters": "on", **BUDGET}
    refused = client.post(address("make", "search"), form)
    assert refused.status_code == 422
    assert {*refused.context["options_form"].errors} == {"sentences"}
    assert not Adversary.objects.exists()


def test_the_page_shows_tries_and_what_is_left(scene, client):
    round, owner = scene
    adversary = make_adversary(round, owner)
    run = run_to_its_end(adversary)
    page = client.get(address("adversary", adversary.pk))
    left = {str(line.name): line.left for line in page.context["budget"]}
    assert left["Model calls"] == run.max_calls - run.calls
    stored = client.get(address("adversary", adversary.pk), {"state": "stored"})
    assert [one.example for one in stored.context["page"].rows] == [Example.objects.get()]
    # States without a try would lead to empty pages.
    counts = {value: number for value, _words, number in page.context["states"]}
    assert counts.pop("") == sum(counts.values()) == adversary.logged_tries.count()
    assert set(counts) == set(adversary.logged_tries.values_list("state", flat=True))
    lost = client.get(address("adversary", adversary.pk), {"state": "lost"})
    assert ("lost", 0) in {(value, number) for value, _words, number in lost.context["states"]}


def test_kinds_have_titles_and_empty_settings_are_left_out(scene, client):
    round, owner = scene
    adversary = make_adversary(round, owner, "container")
    assert adversary.kind_title != adversary.kind
    assert client.get(address("adversary", adversary.pk)).context["options"] == []
    adversary.kind = "uninstalled"
    assert adversary.kind_title == "uninstalled"


def test_the_board_puts_adversaries_beside_people(scene, client):
    round, owner = scene
    run_to_its_end(make_adversary(round, owner))
    example = Example.objects.get()
    assert 'id="board-waits"' in client.get(address("adversaries")).text
    override_consensus(
        example=example, owner=owner, choice=Vote(label="positive"), reason="It is clear."
    )
    page = client.get(address("adversaries"))
    assert 'id="board-waits"' not in page.text
    first, people = page.context["board"]
    assert (first.catches, first.refuted, first.waiting) == (1, 0, 0)
    assert first.calls_per_catch.value == first.calls
    assert first.calls_per_catch.low < first.calls < first.calls_per_catch.high
    assert (people.adversary, people.calls, people.catches) == (None, 0, 0)
    assert first.coverage == 1
    assert first.tries == AdversaryTry.objects.filter(is_offered=True).count()
    assert first.pass_chance is None  # with fewer than ten tries


def test_people_with_help_have_a_row_of_their_own(scene, client):
    """Who used a suggestion is compared with those who did not; programs with a token with none."""
    round, owner = scene
    run_to_its_end(make_adversary(round, owner))
    author = UserFactory()
    for number, support in enumerate(
        [None, {"suggestion": "ignore"}, {"suggestion": "use"}, {"suggestion": "edit"}]
    ):
        one = write(round, author, number, text=f"We adored evening {number} there.")
        Example.objects.filter(pk=one.pk).update(support=support)
    program = write(round, author, 9, text="We adored the program.")
    Example.objects.filter(pk=program.pk).update(by_program=True)
    _first, people, helped = client.get(address("adversaries")).context["board"]
    assert (people.code, people.examples, people.fooled) == ("people", 2, 2)
    assert (helped.code, helped.examples, helped.fooled) == ("helped", 2, 2)


def test_the_calls_of_people_without_help_are_all_counted(scene, client):
    """Whatever else is noted of their help, and if nothing is."""
    round, owner = scene
    run_to_its_end(make_adversary(round, owner))
    target = round.round_targets.get().target
    version = TargetOutput.objects.first().version
    author = UserFactory()
    for number, support in enumerate(
        [None, {"challenge": "x"}, {"examples": 3}, {"suggestion": "ignore"}, {"suggestion": "use"}]
    ):
        one = write(round, author, number, text=f"We adored evening {number} there.")
        Example.objects.filter(pk=one.pk).update(support=support)
        TargetOutput.objects.create(
            example=one, target=target, version=version, output={"label": "negative"}, seconds=1
        )
    _first, people, helped = client.get(address("adversaries")).context["board"]
    assert (people.calls, people.examples) == (4, 4)
    assert (helped.calls, helped.examples) == (1, 1)


def test_what_people_refute_is_no_catch(scene, client):
    round, owner = scene
    run_to_its_end(make_adversary(round, owner))
    override_consensus(
        example=Example.objects.get(), owner=owner, choice=Vote(label="negative"), reason="Cold."
    )
    first = client.get(address("adversaries")).context["board"][0]
    assert (first.catches, first.refuted) == (0, 1)
    assert first.calls_per_catch is None


def test_nightly_runs_are_switched_and_adversaries_retired(scene, client):
    round, owner = scene
    adversary = make_adversary(round, owner)
    client.post(address("schedule", adversary.pk), {"nightly": "1"})
    adversary.refresh_from_db()
    assert adversary.is_nightly
    client.post(address("retire", adversary.pk))
    adversary.refresh_from_db()
    assert adversary.retired_at
    assert not adversary.is_nightly


@pytest.mark.parametrize("role", ["reviewer", "viewer", "judge", "annotator", "writer"])
def test_who_may_not_edit_reaches_nothing(scene, client, role):
    round, owner = scene
    adversary = make_adversary(round, owner)
    member = UserFactory()
    TaskMember.objects.create(task=round.task, user=member, role=role)
    client.force_login(member)
    for name in ("start", "stop", "schedule", "retire"):
        assert client.post(address(name, adversary.pk)).status_code == 403
    for page in (address("adversaries"), address("adversary", adversary.pk)):
        assert client.get(page).status_code == 403
    assert client.post(address("make", "search"), {}).status_code == 403
    assert not AdversaryRun.objects.exists()


def test_judges_learn_nothing_of_who_wrote_a_text(scene, client):
    """The page on which they judge names neither programs nor the adversary."""
    round, owner = scene
    adversary = make_adversary(round, owner, name="zzadversary")
    run_to_its_end(adversary)
    judge = UserFactory()
    client.force_login(judge)
    page = client.get(f"/t/{round.task.code}/judge/").content.decode()
    text = Example.objects.get().inputs["text"]
    assert text in page
    for told in ("zzadversary", "program", adversary.annotator.pseudonym):
        assert not re.search(rf"\b{told}\b", page)
