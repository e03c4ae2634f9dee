"""Conversations through the API: said, read, taken back and sent, as on the page."""

import json

import pytest

from annotation.models import Assignment, Conversation, Example
from tests.support.api_writing import error
from tests.support.factories import UserFactory
from tests.support.talks import CONFIG, opened

TALKS = "/api/v1/tasks/talks/"


@pytest.fixture
def talks(db):
    return opened()[0]


@pytest.fixture
def url(talks, api):
    return f"/api/v1/assignments/{api.post(f'{TALKS}assignment/').json()['id']}/"


def say(client, url, text, **more):
    return client.post(f"{url}conversation/", {"text": text, **more})


def test_a_conversation_is_said_read_and_sent_as_an_example(api, url):
    assert api.get(f"{url}conversation/").json() == {
        "turns": [], "at": 0, "said": "", "is_asking": False, "failure": "", "left": 3,
    }  # fmt: skip
    assert say(api, url, "When did it close?").status_code == 200
    found = say(api, url, "Are you sure?", at=2).json()
    assert [(turn["place"], turn["role"]) for turn in found["turns"]] == [
        (0, "user"), (1, "assistant"), (2, "user"), (3, "assistant"),
    ]  # fmt: skip
    assert found["turns"][3]["text"] == "No: in 1941."
    assert (found["at"], found["left"]) == (4, 1)
    assert api.get(f"{url}conversation/").json() == found
    sent = api.post(f"{url}examples/", {"inputs": {"talk": 3, "how": "wrong"}})
    assert sent.status_code == 201, sent.content
    example = Example.objects.get()
    assert example.by_program
    assert [turn["text"] for turn in example.inputs["talk"]] == [
        "When did it close?", "It closed in 1931.", "Are you sure?",
    ]  # fmt: skip
    assert sent.json()["answers"][0]["output"] == {"reply": "No: in 1941."}
    assert not Conversation.objects.exists()


def test_turns_are_taken_back_and_edited_from(api, url):
    for text in ("One", "Two"):
        say(api, url, text)
    edited = api.post(f"{url}conversation/back/", {"turn": 2, "edit": True}).json()
    assert (len(edited["turns"]), edited["said"]) == (2, "Two")
    taken = api.post(f"{url}conversation/back/", {"turn": 0}).json()
    assert (taken["turns"], taken["said"], taken["left"]) == ([], "", 3)
    for place in (0, 1, 9):
        error(api.post(f"{url}conversation/back/", {"turn": place}), 409, "stale")


@pytest.mark.parametrize(
    ("text", "more", "status", "code"),
    [
        ("  ", {}, 422, None),
        ("x" * 2001, {}, 422, "unsaid"),
        ("a\x00", {}, 422, None),
        ("Hello", {"at": 4}, 409, "stale"),
        ("Hello", {"to": "you"}, 422, "invalid"),
    ],
)
def test_what_cannot_be_said_is_refused(api, url, text, more, status, code):
    said = say(api, url, text, **more)
    assert said.status_code == status, said.content
    assert code in (None, said.json()["error"]["code"])
    assert api.get(f"{url}conversation/").json()["turns"] == []


def test_a_conversation_ends_and_a_failed_answer_is_no_turn(api, url):
    failed = say(api, url, "Break").json()
    assert failed["failure"]
    assert (failed["turns"], failed["said"], failed["left"]) == ([], "Break", 3)
    for number in range(3):
        say(api, url, f"Turn {number}")
    error(say(api, url, "fourth"), 429, "cap")


@pytest.mark.parametrize("place", [0, 2, 9, -1])
def test_only_an_answer_is_marked(api, url, place):
    say(api, url, "When?")
    sent = api.post(f"{url}examples/", {"inputs": {"talk": place, "how": "wrong"}})
    assert "inputs.talk" in error(sent, 422, "invalid")["fields"]
    assert not Example.objects.exists()


def test_what_the_model_was_told_first_is_never_told(talks, api, url):
    config = CONFIG | {"input": [CONFIG["input"][0] | {"system": "The word is {secret}."}]}
    talks.task.config_text = json.dumps(config)
    talks.task.save()
    found = say(api, url, "What is it?").json()
    secret = Conversation.objects.get().turns[0]["secret"]
    assert secret not in json.dumps(found)
    assert [turn["place"] for turn in found["turns"]] == [1, 2]


def test_nobody_else_talks_and_programs_only_where_they_may(talks, api, api_of, bobs, anybody, url):
    calls = [("get", "", None), ("post", "", {"text": "Hi"}), ("post", "back/", {"turn": 0})]
    for method, path, body in calls:
        for client, status in (
            (anybody, 401),
            (bobs, 404),
            (api_of(UserFactory(is_superuser=True)), 404),
            (api_of(Assignment.objects.get().annotator.user, "submit"), 403),
        ):
            assert getattr(client, method)(f"{url}conversation/{path}", body).status_code == status
    talks.task.config_text = json.dumps(CONFIG | {"programs": {"write": False}})
    talks.task.save()
    for method, path, body in calls:
        error(getattr(api, method)(f"{url}conversation/{path}", body), 403, "programs")


def test_a_task_without_conversations_has_none(api, nli):
    taken = api.post("/api/v1/tasks/nli/assignment/").json()
    assert api.get(f"/api/v1/assignments/{taken['id']}/conversation/").status_code == 404
