"""Writing through the API: the pages' services, refusals and words, marked as by a program."""

import uuid

import pytest
from django.utils import timezone

from annotation.models import Assignment, Attempt, Example, GatePass
from core.accounts.services import get_annotator
from tasks.models import Round
from tests.support.api_writing import configure, error
from tests.support.factories import scripted_target
from tests.support.writing import NLI_PROB
from tests.support.writing_aids import next_round, publish

TAKE = "/api/v1/tasks/nli/assignment/"
TEXT = {"inputs": {"hypothesis": "The shop was open at ten."}}


@pytest.fixture
def target(nli):
    return scripted_target(nli, output={"label": "entailment"}, prob=NLI_PROB)


def taken(client, url=TAKE, **asked):
    response = client.post(url, asked)
    assert response.status_code == 200, response.content
    return response.json()


def sent(client, asked=TEXT, **headers):
    url = address(client)
    Assignment.objects.update(goal="neutral")
    return client.post(url, asked, **headers)


def address(client, url=TAKE):
    return f"/api/v1/assignments/{taken(client, url)['id']}/examples/"


def test_an_assignment_is_kept_until_another_is_wanted(api, nli):
    first = taken(api)
    assert set(first) == {
        *("id", "task", "round", "context", "goal", "goal_text", "parent", "draft"),
    }
    assert (first["task"], first["round"], first["parent"]) == ("nli", 1, None)
    assert first["context"]["fields"]["premise"].startswith("Person")
    assert first["goal"] in ("entailment", "neutral", "contradiction")
    assert taken(api) == first
    other = taken(api, want="context")
    assert other["context"] != first["context"]
    again = taken(api, want="goal")
    assert (again["id"], again["context"]) == (other["id"], other["context"])
    assert again["goal"] != other["goal"]


def test_an_example_comes_with_what_the_targets_said(api, alice, nli, target):
    response = sent(api)
    assert response.status_code == 201
    example = Example.objects.get()
    assert response.json() == {
        "id": str(example.uuid),
        "task": "nli",
        "round": 1,
        "context": {"id": example.context_id, "fields": example.context.fields},
        "inputs": {"hypothesis": "The shop was open at ten.", "label": "neutral"},
        "goal": "neutral",
        "outcome": "fooled",
        "decided_by": "rule",
        "why": {},
        "parent": None,
        "by_program": True,
        "created_at": response.json()["created_at"],
        "retracted_at": None,
        "answers": [
            {
                "target": "scripted",
                "output": {"label": "entailment"},
                "prob": NLI_PROB,
                "fooled": True,
                "score": None,
                "criteria": None,
            }
        ],
    }
    assert (example.annotator, example.typing) == (get_annotator(alice), None)


def test_a_session_of_the_site_is_a_person(as_alice, nli):
    kind = {"content_type": "application/json"}
    pk = as_alice.post(TAKE, {}, **kind).json()["id"]
    Assignment.objects.update(goal="neutral")
    response = as_alice.post(f"/api/v1/assignments/{pk}/examples/", TEXT, **kind)
    assert (response.status_code, response.json()["by_program"]) == (201, False)
    assert not Example.objects.get().by_program


def test_what_the_task_hides_is_hidden_here_too(api, nli, target):
    Round.objects.update(show_target_name=False)
    configure(nli.task, "show_confidence: hidden", "show_confidence: full")
    (answer,) = sent(api).json()["answers"]
    assert (answer["target"], answer["prob"]) == ("Model A", None)


@pytest.mark.parametrize(
    ("inputs", "field", "words"),
    [
        ({}, "inputs.hypothesis", "Enter"),
        ({"hypothesis": 5}, "inputs.hypothesis", "text"),
        ({**TEXT["inputs"], "x": 1}, "inputs.x", "no field"),
        ({**TEXT["inputs"], "label": "entailment"}, "inputs.label", "neutral"),
        ({"hypothesis": "A\x00"}, "inputs", "control character"),
        ({"hypothesis": [[[[[[["deep"]]]]]]]}, "inputs", "levels deep"),
        ("text", "inputs", "Expected a dictionary"),
    ],
)
def test_what_does_not_fit_is_named(api, nli, inputs, field, words):
    fields = error(sent(api, {"inputs": inputs}), 422, "invalid")["fields"]
    assert list(fields) == [field]
    assert words in fields[field][0]
    assert not Attempt.objects.exists()


def test_half_a_letter_is_no_text(api, nli):
    """JSON can name one; no database and no answer can hold it."""
    broken = r'{"inputs": {"hypothesis": "\ud800"}}'
    response = api.post(address(api), broken, content_type="application/json")
    assert "control character" in error(response, 422, "invalid")["fields"]["inputs"][0]


def test_the_prompt_must_be_changed(api, sentiment):
    url = "/api/v1/tasks/sentiment/assignment/"
    mine = taken(api, url)
    field = next(c.name for c in sentiment.task.config.input if c.type == "long_text")
    asked = {"inputs": {field: mine["context"]["fields"]["prompt"]}}
    fields = error(api.post(address(api, url), asked), 422, "invalid")["fields"]
    assert list(fields) == [f"inputs.{field}"]


def test_a_span_is_checked_against_the_passage(api, qa):
    url = "/api/v1/tasks/qa/assignment/"
    span = {"text": "1840", "start": 0, "end": 4}
    asked = {"inputs": {"question": "When was the mill built?", "answer": span}}
    fields = error(api.post(address(api, url), asked), 422, "invalid")["fields"]
    assert list(fields) == ["inputs.answer"]
    asked["inputs"]["answer"] = {"text": "1840", "start": 22, "end": 26}
    assert api.post(address(api, url), asked).status_code == 201


def test_an_example_that_is_not_ones_own_is_no_parent(api, bobs, nli):
    other = sent(bobs).json()["id"]
    fields = error(sent(api, {**TEXT, "parent": other}), 422, "invalid")["fields"]
    assert list(fields) == ["parent"]
    own = sent(api).json()["id"]
    edited = {"inputs": {"hypothesis": "Nobody was there, said the baker."}, "parent": own}
    assert sent(api, edited).json()["parent"] == own


def test_the_same_text_twice_is_refused(api, nli):
    sent(api)
    error(sent(api), 422, "duplicate")


def test_caps_are_those_of_the_page(api, nli):
    configure(nli.task, "tries_per_context: 1", "tries_per_context: 10")
    sent(api)
    other = {"inputs": {"hypothesis": "Something else entirely."}}
    error(sent(api, other), 429, "cap")


def test_a_closed_round_takes_nothing(api, nli):
    url = address(api)
    Assignment.objects.update(goal="neutral")
    Round.objects.update(state="closed", closed_at=timezone.now())
    error(api.post(TAKE), 410, "round_closed")
    assert "Round 1 is closed" in error(api.post(url, TEXT), 410, "round_closed")["message"]


def test_no_context_is_left(api, nli):
    nli.contexts.update(is_retired=True)
    error(api.post(TAKE), 409, "no_context")


def test_an_assignment_that_was_left_is_stale(api, nli):
    old = address(api)
    taken(api, want="context")
    error(api.post(old, TEXT), 409, "stale")


def test_who_may_write(api, api_of, anybody, bobs, alice, nli):
    assert anybody.post(TAKE).status_code == 401
    error(api_of(alice, "read").post(TAKE), 403, "scope")
    assert bobs.post(address(api), TEXT).status_code == 404
    url = address(api)
    nli.task.is_visible = False
    nli.task.save(update_fields=["is_visible"])
    assert [api.post(one, TEXT).status_code for one in (TAKE, url)] == [404, 404]
    assert not Example.objects.exists()


@pytest.mark.parametrize("url", ["assignments/99999999999999999999999/examples/", "attempts/x/"])
def test_what_is_not_there(api, url):
    assert api.post(f"/api/v1/{url}", TEXT).status_code == 404


def test_programs_may_be_kept_out(api, as_alice, nli):
    url = address(api)
    Assignment.objects.update(goal="neutral")
    configure(nli.task, "programs: {write: false}")
    for response in (api.post(TAKE), api.post(url, TEXT)):
        error(response, 403, "programs")
    assert as_alice.post(url, TEXT, content_type="application/json").status_code == 201


def test_a_sensitive_task_begins_with_its_warning(api, alice, hate):
    url = "/api/v1/tasks/hate-speech/assignment/"
    found = error(api.post(url), 409, "gate")
    assert "/t/hate-speech/gate/" in found["message"]
    assert "/api/v1/tasks/hate-speech/gate/" in found["message"]
    assert api.post("/api/v1/tasks/hate-speech/gate/").status_code == 204
    assert GatePass.objects.get().annotator == get_annotator(alice)
    assert api.post(url).status_code == 200


def test_an_answer_that_takes_long_is_waited_for(api, nli, settings, monkeypatch):
    scripted_target(nli)
    monkeypatch.setattr("annotation.attempts.services.wait_for_answers", lambda asked: False)
    monkeypatch.setattr("annotation.attempts.services._finish_or_fail_later", lambda *args: None)
    response = sent(api)
    assert (response.status_code, response.json()["state"]) == (202, "asking")
    mine = response["Location"]
    assert mine.endswith(f"/api/v1/attempts/{response.json()['id']}/")
    assert api.get(mine).json()["example"] is None
    assert taken(api)["draft"]["hypothesis"] == TEXT["inputs"]["hypothesis"]
    settings.LIVE_DEADLINE_SECONDS = 0
    lost = api.get(mine).json()
    assert (lost["state"], Attempt.objects.get().failure) == ("failed", "lost")


def test_an_attempt_is_its_authors(api, bobs, nli, target):
    uuid = sent(api).json()["id"]
    done = api.get(f"/api/v1/attempts/{uuid}/").json()
    assert (done["state"], done["example"]["id"]) == ("done", uuid)
    assert bobs.get(f"/api/v1/attempts/{uuid}/").status_code == 404


def test_a_model_that_fails_costs_nothing_and_the_key_may_be_sent_again(api, nli):
    target = scripted_target(nli, fail="down")
    headers = {"HTTP_IDEMPOTENCY_KEY": str(uuid.uuid4())}
    response = sent(api, **headers)
    error(response, 503, "no_answer")
    assert response["Retry-After"] == "10"
    assert taken(api)["draft"]["hypothesis"] == TEXT["inputs"]["hypothesis"]
    target.options = {"output": {"label": "neutral"}}
    target.save()
    assert sent(api, **headers).status_code == 201
    assert Attempt.objects.count() == 1


def test_a_key_that_is_sent_twice_stores_one_example(api, nli, target):
    headers = {"HTTP_IDEMPOTENCY_KEY": "mine"}
    first, second = sent(api, **headers), sent(api, **headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert second["Idempotent-Replayed"] == "true"
    assert Example.objects.count() == 1


def test_an_example_is_taken_back(api, bobs, nli):
    url = f"/api/v1/examples/{sent(api).json()['id']}/retract/"
    assert bobs.post(url).status_code == 404
    assert api.post(url).json()["retracted_at"]
    assert api.post(url).status_code == 200
    assert Example.objects.get().retracted_at


def test_what_somebody_judged_is_not_taken_back(api, bob, nli):
    from validation.models import Validation

    uuid = sent(api).json()["id"]
    example = Example.objects.get()
    Validation.objects.create(example=example, validator=get_annotator(bob), label="neutral")
    error(api.post(f"/api/v1/examples/{uuid}/retract/"), 403, "refused")


def test_an_author_says_why(api, bobs, nli, target):
    url = f"/api/v1/examples/{sent(api).json()['id']}/why/"
    names = [component.name for component in nli.task.config.metadata.create]
    assert bobs.post(url, {"why": {}}).status_code == 404
    fields = error(api.post(url, {"why": {"other": 1}}), 422, "invalid")["fields"]
    assert list(fields) == ["why.other"]
    text = next(c.name for c in nli.task.config.metadata.create if "text" in c.type)
    told = api.post(url, {"why": {text: "Because nobody said so."}}).json()
    assert told["why"] == {text: "Because nobody said so."}
    assert text in names


def test_the_author_decides_what_is_too_close(api, nli):
    uuid = sent(api).json()["id"]
    url = f"/api/v1/examples/{uuid}/answer/"
    error(api.post(url, {"model_right": True}), 403, "refused")
    Example.objects.update(outcome="undecided")
    assert api.post(url, {}).status_code == 422
    told = api.post(url, {"model_right": False}).json()
    assert (told["outcome"], told["decided_by"]) == ("fooled", "author")


def test_somebodys_example_is_changed_minimally(api, api_of, bob, nli):
    error(api.post(TAKE, {"want": "edit"}), 409, "no_context")
    first = sent(api_of(bob)).json()
    error(api.post(TAKE, {"want": "edit"}), 409, "no_context")
    next_round(nli)
    publish(Example.objects.get(uuid=first["id"]))
    parent = taken(api, want="edit")["parent"]
    assert parent == {"id": first["id"], "inputs": first["inputs"]}
    fields = error(sent(api), 422, "invalid")["fields"]
    assert list(fields) == ["inputs.hypothesis"]


def test_what_a_program_sends_is_stored_in_one_form(api, nli, target):
    inputs = {"hypothesis": "The cafe\u0301 was open at ten.", "label": " Neutral "}
    assert sent(api, {"inputs": inputs}, format="json").status_code == 201
    expected = {"hypothesis": "The caf\u00e9 was open at ten.", "label": "neutral"}
    assert Example.objects.get().inputs == expected
