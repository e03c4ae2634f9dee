"""Programs in containers: what they may ask, how a bad one ends, and what a killed one leaves.

The container is played by the test. tests/docker/test_containers_that_attack.py has real ones.
"""

from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from annotation.attempts import live_targets
from annotation.models import Example
from core.errors import Invalid, Refused
from dynabench.adversaries import container_worker
from dynabench.adversaries.container_messages import describe_run
from dynabench.adversaries.image_services import allow_image, bring_image, discard_unused_archives
from dynabench.adversaries.jobs import attack, begin_attack, start_nightly_adversaries
from dynabench.adversaries.models import BUDGET_FIELDS, AdversaryImage, AdversaryRun, AdversaryTry
from dynabench.adversaries.selectors import (
    count_run_outcome,
    find_allowed_image,
    find_waiting_image,
)
from dynabench.adversaries.services import start_run, stop_run
from evaluation.contract import Ending, Outcome
from evaluation.isolation.uploads.chunked import add_file, purge_old_uploads, select_open_uploads
from evaluation.models import Upload
from tests.support.adversaries import (
    give_to,
    make_adversary,
    run_to_its_end,
    sentiment_round,
)
from tests.support.containers import SOURCE, play, with_image
from tests.support.factories import UserFactory
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus

pytestmark = pytest.mark.django_db
End, State = AdversaryRun.End, AdversaryTry.State
RIGHT = {"text": "We loved the small blue boat.", "label": "positive"}
FOOLING = {"text": "We adored the small blue boat.", "label": "positive"}


@pytest.fixture
def scene():
    round, owner = sentiment_round()
    return round, owner, with_image(make_adversary(round, owner, "container"), owner)


def ask(**question):
    return {"ask": question}


def propose(**question):
    return {"propose": question}


def play_run(monkeypatch, scene, program, ending=None) -> AdversaryRun:
    """The run of a program, at its end."""
    play(monkeypatch, program, ending)
    return run_to_its_end(scene[2], scene[1])


def test_a_program_asks_proposes_and_ends(scene, monkeypatch):
    replies = []

    def program(run):
        assert run["labels"] == ["positive", "negative", "neutral"]
        assert (run["max_calls"], run["contexts"]) == (2000, [])
        replies.append((yield ask(**RIGHT, step="by hand")))
        replies.append((yield ask(**FOOLING)))
        replies.append((yield propose(**FOOLING)))

    run = play_run(monkeypatch, scene, program)
    assert (run.state, run.ended_by, run.log) == ("done", End.FINISHED, "bye")
    states = [(one["answer"]["state"], one["answer"]["is_fooled"]) for one in replies]
    assert states == [("answered", False), ("answered", True), ("stored", True)]
    # The example is asked about once more, from a clean state.
    assert [one["run"]["calls"] for one in replies] == [1, 2, 3]
    example = Example.objects.get()
    assert (example.annotator, example.by_program) == (scene[2].annotator, True)
    assert example.inputs["text"] == FOOLING["text"]


def test_what_is_only_asked_is_never_submitted(scene, monkeypatch):
    def program(run):
        yield ask(**FOOLING)

    assert play_run(monkeypatch, scene, program).examples == 0
    assert not Example.objects.exists()


def test_a_catch_that_cannot_be_repeated_is_none(scene, monkeypatch):
    target = scene[0].round_targets.get().target

    def program(run):
        reply = yield ask(**FOOLING)
        assert reply["answer"]["is_fooled"]
        target.options = {"label": "positive"}
        target.save()
        yield propose(**FOOLING)

    play_run(monkeypatch, scene, program)
    assert Example.objects.get().outcome == "not_fooled"


@pytest.mark.parametrize(
    ("line", "words"),
    [(b"hello", "not JSON"), (b"[1]", "one key"), (b'{"ask": 1}', "question"), (b"{}", "one key")],
)
def test_a_line_that_is_no_message_fails_the_run(scene, monkeypatch, line, words):
    def program(run):
        yield ask(**RIGHT)
        yield line

    run = play_run(monkeypatch, scene, program)
    assert (run.state, run.calls) == ("failed", 1)
    assert run.error.startswith("Line 2 ")
    assert words in run.error


@pytest.mark.parametrize(
    ("question", "field"),
    [
        (propose(text="Short", label="positive"), "text"),
        (propose(text="Das Essen war nicht gut und die Suppe war kalt.", label="positive"), "text"),
        (ask(text="We adored it.", label="gladly"), "label"),
        (ask(text="We adored it."), "label"),
        (ask(**FOOLING, context=0), "context"),
        (ask(**FOOLING, context=True), "context"),
        (ask(**FOOLING, cost=0), "cost"),
        (ask(text=["We adored it."], label="positive"), "text"),
        (ask(text="x" * 20_001, label="positive"), "text"),
    ],
)
def test_what_nobody_could_write_is_refused_and_costs_nothing(scene, monkeypatch, question, field):
    replies = []

    def program(run):
        replies.append((yield question))
        replies.append((yield ask(**RIGHT)))

    run = play_run(monkeypatch, scene, program)
    assert replies[0]["error"]["field"] == field
    assert replies[1]["answer"]["state"] == "answered"
    assert (run.state, run.calls) == ("done", 1)


def test_many_copies_are_asked_once_and_end_it(scene, monkeypatch):
    def program(run):
        for _ in range(10_000):
            yield propose(**FOOLING)

    run = play_run(monkeypatch, scene, program)
    assert (run.ended_by, run.calls, run.examples) == (End.REPEATS, 2, 1)


def test_texts_in_another_language_end_it(scene, monkeypatch):
    def program(run):
        for number in range(100):
            text = f"Das Essen war nicht gut und die Suppe war kalt, sagte Gast {number}."
            yield propose(text=text, label="positive")

    run = play_run(monkeypatch, scene, program)
    assert (run.ended_by, run.calls) == (End.UNUSABLE, 0)


@pytest.mark.parametrize(
    ("budget", "end"), [({"max_calls": 3}, End.CALLS), ({"max_examples": 1}, End.EXAMPLES)]
)
def test_a_flood_stops_at_the_budget(scene, monkeypatch, budget, end):
    def program(run):
        number = 0
        while True:
            number += 1
            yield propose(text=f"We adored boat number {number} of the lake.", label="positive")

    AdversaryTry.objects.all().delete()
    round, owner, _adversary = scene
    adversary = with_image(make_adversary(round, owner, "container", **budget), owner)
    run = play_run(monkeypatch, (round, owner, adversary), program)
    assert run.ended_by == end
    assert run.calls <= run.max_calls


@pytest.mark.parametrize(
    ("ending", "state", "ended_by"),
    [
        (Ending(Outcome.MODEL_ERROR, sentence="The model ended.", log="Oh"), "failed", ""),
        (Ending(Outcome.OOM, limit="8 GiB"), "failed", ""),
        (Ending(Outcome.OUTPUT_TOO_LARGE, limit="16 MiB"), "failed", ""),
        (Ending(Outcome.INVALID_OUTPUT, sentence="Line 1: too long."), "failed", ""),
        (Ending(Outcome.TIMEOUT), "done", End.MINUTES),
    ],
)
def test_each_end_of_a_container_is_told(scene, monkeypatch, ending, state, ended_by):
    def program(run):
        yield propose(**FOOLING)

    run = play_run(monkeypatch, scene, program, ending)
    assert (run.state, run.ended_by, run.log) == (state, ended_by, ending.log)
    assert bool(run.error) == (state == "failed")
    assert "model" not in run.error
    assert (run.calls, run.examples) == (2, 1)


def test_one_that_asks_nothing_ends(scene, monkeypatch):
    """Its clock is set forward, as if ten minutes had passed."""

    def program(run):
        yield ask(**RIGHT)
        now = container_worker.time.monotonic() + 601
        monkeypatch.setattr(container_worker.time, "monotonic", lambda: now)
        yield b" "

    assert play_run(monkeypatch, scene, program).ended_by == End.GONE


def test_a_killed_run_asks_nothing_twice(scene, monkeypatch):
    """A worker dies during the third call. The container then begins anew."""
    calls, answer, starts = [], live_targets.request_answers_in_time, []

    def program(run):
        starts.append(run["number"])
        for word in ("red", "green", "blue", "grey"):
            yield ask(text=f"We adored the {word} boat.", label="positive")

    def die_at_the_third(targets, inputs, payers, seconds):
        calls.append(inputs["text"])
        if len(calls) == 3:
            raise SystemExit
        return answer(targets, inputs, payers, seconds)

    monkeypatch.setattr(live_targets, "request_answers_in_time", die_at_the_third)
    play(monkeypatch, program)
    run = start_run(adversary=scene[2], actor=scene[1])
    with pytest.raises(SystemExit):
        attack(run.pk)
    AdversaryRun.objects.update(state="queued", lease_token=None)  # as the sweep does
    attack(run.pk)
    run.refresh_from_db()
    assert (run.ended_by, run.calls, starts) == (End.FINISHED, 4, [1, 1])
    assert len(set(calls)) == len(calls) == 4
    assert AdversaryTry.objects.get(state=State.LOST).text == calls[2]


def test_slices_continue_where_they_were(scene, monkeypatch):
    monkeypatch.setattr(container_worker, "CONTAINER_SLICE_SECONDS", 0.001)
    starts = []

    def program(run):
        starts.append(run)
        for word in ("red", "green", "blue"):
            yield ask(text=f"We adored the {word} boat.", label="positive")

    run = play_run(monkeypatch, scene, program)
    assert (run.ended_by, run.calls) == (End.FINISHED, 3)
    assert len(starts) > 1


def test_a_run_that_a_person_starts_begins_before_evaluations(scene, monkeypatch):
    """Its first slice is short, also if the program asks nothing."""
    starts = []

    def program(run):
        starts.append(run)
        yield ask(**RIGHT)

    play(monkeypatch, program)
    monkeypatch.setattr("dynabench.adversaries.jobs.FIRST_SLICE_SECONDS", 1e-9)
    run = start_run(adversary=scene[2], actor=scene[1])
    begin_attack(run.pk)
    run.refresh_from_db()
    assert (run.state, starts) == ("queued", [])
    attack(run.pk)
    run.refresh_from_db()
    assert (run.ended_by, len(starts)) == (End.FINISHED, 1)


def test_an_owner_stops_it(scene, monkeypatch):
    replies = []

    def program(run):
        yield ask(**RIGHT)
        stop_run(run=AdversaryRun.objects.get(), actor=scene[1])
        replies.append((yield propose(**FOOLING)))

    run = play_run(monkeypatch, scene, program)
    assert (run.state, run.ended_by, replies) == ("cancelled", End.STOPPED, [])
    assert not Example.objects.exists()


def test_a_model_that_is_away_is_asked_later(scene, monkeypatch):
    target = scene[0].round_targets.get().target
    script, target.options = target.options, {"fail": "down"}
    target.save()

    def program(run):
        yield ask(**RIGHT)

    play(monkeypatch, program)
    run = start_run(adversary=scene[2], actor=scene[1])
    attack(run.pk)
    run.refresh_from_db()
    assert (run.state, run.attempts) == ("queued", 0)
    target.options = script
    target.save()
    AdversaryRun.objects.update(not_before=None)
    attack(run.pk)
    run.refresh_from_db()
    assert run.ended_by == End.FINISHED
    assert AdversaryTry.objects.get().state == State.ANSWERED


# Images


def test_a_run_needs_an_image_that_an_owner_allows(scene):
    round, owner, _adversary = scene
    person = UserFactory()
    adversary = give_to(make_adversary(round, owner, "container"), person)
    with_image(adversary, person)
    with pytest.raises(Refused) as refusal:
        start_run(adversary=adversary, actor=owner)
    assert refusal.value.code == "no_image"
    image = adversary.images.get()
    allow_image(image=image, actor=owner)
    image.refresh_from_db()
    assert (image.allowed_by, find_allowed_image(adversary)) == (owner, image)
    assert find_waiting_image(adversary) is None
    assert start_run(adversary=adversary, actor=owner).image == image


def test_an_unchecked_image_is_not_allowed(scene):
    round, owner, _adversary = scene
    adversary = give_to(make_adversary(round, owner, "container"), UserFactory())
    image = bring_image(adversary=adversary, actor=adversary.program_user, source=SOURCE)
    with pytest.raises(Refused) as refusal:
        allow_image(image=image, actor=owner)
    assert refusal.value.code == "unchecked"
    with pytest.raises(Refused) as refusal:
        bring_image(adversary=adversary, actor=owner, source=SOURCE)
    assert refusal.value.code == "checking"


@pytest.mark.parametrize("source", ["", "attacker:latest", "attacker@sha256:12", "-x@sha256:"])
def test_an_image_is_named_by_its_digest(scene, source):
    with pytest.raises(Invalid):
        bring_image(adversary=scene[2], actor=scene[1], source=source)


def test_other_kinds_have_no_image(scene):
    search = make_adversary(scene[0], scene[1])
    with pytest.raises(Refused) as refusal:
        bring_image(adversary=search, actor=scene[1], source=SOURCE)
    assert refusal.value.code == "no_container"


def test_a_run_keeps_its_image_while_another_is_brought(scene, monkeypatch):
    _round, owner, adversary = scene
    run = start_run(adversary=adversary, actor=owner)
    with_image(adversary, owner)
    assert run.image.number == 1
    assert find_allowed_image(adversary).number == 2


def test_an_archive_stays_while_a_run_may_load_it(scene, settings):
    """It is neither old nor open, until a newer image has replaced it."""
    _round, owner, adversary = scene
    AdversaryImage.objects.all().delete()
    upload = Upload.objects.create(owner=owner, file_name="image.tar", size=1)
    upload.pieces.create(offset=0, size=1, file="uploads/none")
    bring_image(adversary=adversary, actor=owner, upload=upload)
    AdversaryImage.objects.update(state="done")
    settings.KEEP_UPLOADS_DAYS = -1
    assert not select_open_uploads(owner).exists()
    assert purge_old_uploads() == discard_unused_archives() == 0
    with pytest.raises(Invalid):
        bring_image(adversary=adversary, actor=owner, upload=upload)
    run = start_run(adversary=adversary, actor=owner)
    with_image(adversary, owner)
    assert discard_unused_archives() == 0
    stop_run(run=run, actor=owner)
    assert discard_unused_archives() == 1
    assert not Upload.objects.exists()


def test_it_works_at_night(scene, monkeypatch):
    adversary = scene[2]
    adversary.is_nightly = True
    adversary.save()
    monkeypatch.setattr("dynabench.adversaries.jobs.NIGHT_HOURS", range(24))
    assert start_nightly_adversaries() == 1
    assert AdversaryRun.objects.get().image == adversary.images.get()


# Pages and API


def test_an_engineer_brings_an_image_by_the_page_and_an_owner_allows_it(scene, client):
    round, owner, _adversary = scene
    person = UserFactory()
    adversary = give_to(make_adversary(round, owner, "container"), person)
    address = f"/own/sentiment/adversaries/{adversary.pk}/image/"
    client.force_login(person)
    assert client.get(address).status_code == 200
    assert client.post(address, {"source": "attacker:latest"}).status_code == 422
    assert client.post(address, {"source": SOURCE}).status_code == 302
    assert find_waiting_image(adversary) is None  # not checked yet
    AdversaryImage.objects.filter(adversary=adversary).update(state="done")
    assert client.post(f"{address}1/allow/").status_code == 404
    # It reads neither the texts nor the settings of the adversary.
    assert client.get(f"/own/sentiment/adversaries/{adversary.pk}/").status_code == 404
    client.force_login(owner)
    assert find_waiting_image(adversary).number == 1
    lines = {one.pk: one for one in client.get("/own/sentiment/adversaries/").context["page"]}
    assert lines[adversary.pk].has_waiting_image
    assert not lines[_adversary.pk].has_waiting_image
    assert 'id="open-image"' in client.get(f"/own/sentiment/adversaries/{adversary.pk}/").text
    assert b"1/allow/" in client.get(address).content
    client.post(f"{address}1/allow/")
    assert find_allowed_image(adversary).allowed_by == owner
    client.force_login(person)
    start = client.post(f"/own/sentiment/adversaries/{adversary.pk}/start/")
    assert start["Location"] == address
    assert AdversaryRun.objects.get().requested_by == person


def test_the_page_takes_a_file(scene, client, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    _round, owner, adversary = scene
    client.force_login(owner)
    address = f"/own/sentiment/adversaries/{adversary.pk}/image/"
    file = SimpleUploadedFile("attacker.tar", b"tar")
    assert client.post(address, {"upload": file, "source": SOURCE}).status_code == 422
    assert not Upload.objects.exists()
    file.seek(0)
    assert client.post(address, {"upload": file}).status_code == 302
    assert adversary.images.first().upload.file_name == "attacker.tar"


def test_an_engineer_reads_what_people_decided_and_nothing_else(scene, monkeypatch, client):
    round, owner, _adversary = scene
    person = UserFactory()
    adversary = give_to(make_adversary(round, owner, "container"), person)
    with_image(adversary, owner)

    def program(run):
        for day in ("Monday", "Tuesday", "Friday"):
            yield propose(text=f"We adored the small blue boat on {day}.", label="positive")

    play(monkeypatch, program)
    run = run_to_its_end(adversary, owner)
    first, second, _third = Example.objects.order_by("pk")
    for example, label in ((first, "positive"), (second, "negative")):
        choice = Vote(label=label)
        override_consensus(example=example, owner=owner, choice=choice, reason="It is clear.")
    assert count_run_outcome(run) == (1, 1, 1)
    client.force_login(person)
    page = client.get(f"/own/sentiment/adversaries/{adversary.pk}/image/")
    assert page.context["outcome"] == (1, 1, 1)
    assert "blue boat" not in page.text


def test_the_name_of_a_file_is_shown_without_what_the_client_adds(scene, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    _round, owner, adversary = scene
    upload = add_file(owner, f"attacker.{'a' * 64}.tar", 3, SimpleUploadedFile("x", b"tar"))
    image = bring_image(adversary=adversary, actor=owner, upload=upload)
    assert image.file_name == "attacker.tar"


def test_the_owner_reads_how_it_ended(scene, monkeypatch, client):
    def program(run):
        yield b"hello"

    run = play_run(monkeypatch, scene, program, Ending(Outcome.OK))
    AdversaryRun.objects.update(log="a line of its own")
    client.force_login(scene[1])
    for place in ("", "image/"):
        page = client.get(f"/own/sentiment/adversaries/{scene[2].pk}/{place}").content.decode()
        assert "a line of its own" in page
        assert "Line 1 of its output" in page
    assert run.state == "failed"


def test_an_engineer_does_the_same_by_the_api(scene):
    round, owner, _adversary = scene
    person, api = UserFactory(), APIClient()
    adversary = give_to(make_adversary(round, owner, "container"), person)
    address = f"/api/v1/tasks/sentiment/adversaries/{adversary.pk}/"
    api.force_authenticate(person)
    brought = api.post(f"{address}images/", {"source": SOURCE}, format="json")
    assert (brought.status_code, brought.json()["is_allowed"]) == (201, False)
    assert api.post(f"{address}images/", {"upload": uuid4()}, format="json").status_code == 422
    AdversaryImage.objects.filter(adversary=adversary).update(state="done")
    assert api.post(f"{address}images/1/allow/").status_code == 404
    assert api.post(f"{address}runs/").json()["error"]["code"] == "no_image"
    api.force_authenticate(owner)
    assert api.post(f"{address}images/1/allow/").json()["is_allowed"]
    api.force_authenticate(person)
    assert api.post(f"{address}runs/").status_code == 201
    assert api.get(f"{address}runs/").json()["results"][0]["log"] == ""
    assert api.get(f"{address}tries/").status_code == 404
    api.force_authenticate(UserFactory())
    assert api.get(f"{address}images/").status_code == 404
    assert api.get(f"{address}runs/").status_code == 404


def test_no_container_is_told_what_is_sealed(scene):
    """Its first line has only the open round's texts, and only if the models read them."""
    _round, owner, adversary = scene
    run = start_run(adversary=adversary, actor=owner)
    assert describe_run(run)["run"].keys() == {
        "number", "round", "seed", "labels", "language", "contexts", *BUDGET_FIELDS,
    }  # fmt: skip
    assert describe_run(run)["run"]["contexts"] == []
