"""What differs between the four tasks."""

import re

import pytest
from django.test import Client

from annotation.models import Assignment, Example
from tests.support.factories import ContextFactory, TaskFactory, scripted_target
from tests.support.writing import goal_is, open_form, stored
from tests.support.writing_aids import next_round, publish
from tests.web.conftest import HTMX

PASSAGE = "Ada built the mill in 1840. The mill burned down. Ada left Tarn in 1850."


def ask(client, answer, **fields):
    form = open_form(client, "/t/qa/write/", question="When did Ada leave?", **fields)
    return client.post("/t/qa/write/", {**form, "answer": answer}, **HTMX)


def says(round, text):
    start = PASSAGE.index(text)
    output = {"answer": text, "start": start, "end": start + len(text)}
    return scripted_target(round, output=output)


def test_a_typed_answer_is_found_in_the_passage(as_alice, qa):
    says(qa, "1840")
    response = ask(as_alice, "1850")
    assert 'class="verdict fooled"' in response.text
    assert [answer.overlap for answer in response.context["answers"]] == [0]
    start = PASSAGE.index("1850")
    assert Example.objects.get().inputs["answer"] == {
        "text": "1850",
        "start": start,
        "end": start + 4,
    }


def test_an_answer_that_is_not_there_is_refused(as_alice, qa):
    says(qa, "1840")
    response = ask(as_alice, "in 1850 sharp")
    assert response.status_code == 422
    assert 'id="error-summary"' in response.text


def test_an_ambiguous_answer_is_asked_about(as_alice, qa):
    says(qa, "1840")
    response = ask(as_alice, "The mill".lower())
    assert response.status_code == 200  # "the mill" is there once
    Example.objects.all().delete()
    response = ask(as_alice, "Ada")
    assert response.status_code == 422
    assert "Which occurrence?" in response.text
    starts = re.findall(r'name="answer_start" value="(\d+)"', response.text)
    assert [PASSAGE[int(s) :][:3] for s in starts] == ["Ada", "Ada"]
    response = ask(as_alice, "Ada", answer_start=starts[1])
    assert response.status_code == 200
    assert Example.objects.get().inputs["answer"]["start"] == int(starts[1])


def test_a_forged_offset_is_not_believed(as_alice, qa):
    says(qa, "1840")
    ask(as_alice, "1850", answer_start="0")
    assert Example.objects.get().inputs["answer"]["start"] == PASSAGE.index("1850")


@pytest.mark.parametrize(
    ("right", "outcome"), [("yes", "not_fooled"), ("no", "fooled")], ids=["right", "wrong"]
)
def test_a_borderline_overlap_is_the_authors_call_once(as_alice, qa, right, outcome):
    says(qa, "mill in 1840")  # "in 1850" shares one of five words: F1 0.4
    response = ask(as_alice, "in 1850")
    assert 'class="verdict undecided"' in response.text
    assert 'name="model_right"' in response.text
    example = Example.objects.get()
    assert example.outcome == "undecided"
    url = f"/attempt/{example.uuid}/answer/"
    assert as_alice.post(url, {}, **HTMX).status_code == 422
    as_alice.post(url, {"model_right": right}, **HTMX)
    as_alice.post(url, {"model_right": "yes" if right == "no" else "no"}, **HTMX)
    example.refresh_from_db()
    assert (example.outcome, example.decided_by) == (outcome, "author")


def test_offsets_are_code_points(as_alice, qa):
    ContextFactory(round=qa, fields={"passage": "🐀🐀 Ada came in 1850."})
    qa.contexts.exclude(fields__passage__startswith="🐀").update(is_retired=True)
    scripted_target(qa, output={"answer": "Ada", "start": 3, "end": 6})
    ask(as_alice, "1850")
    assert Example.objects.get().inputs["answer"]["start"] == 15


SENTIMENT = "/t/sentiment/write/"


def test_the_prompt_is_there_to_be_changed(as_alice, sentiment):
    scripted_target(sentiment, label="positive")
    assert "The soup was warm and cheap.</textarea>" in as_alice.get(SENTIMENT).text
    same = open_form(as_alice, SENTIMENT) | {"text": " The soup  was warm and cheap. "}
    response = as_alice.post(SENTIMENT, same, **HTMX)
    assert response.status_code == 422
    assert 'id="error-summary"' in response.text


def test_the_prompt_never_reaches_the_model(as_alice, sentiment):
    scripted_target(sentiment, label="positive", rules=[{"contains": "soup", "label": "negative"}])
    goal_is(as_alice, "negative", SENTIMENT)
    form = open_form(as_alice, SENTIMENT) | {"text": "The bread was stale."}
    as_alice.post(SENTIMENT, form, **HTMX)
    assert Example.objects.get().outcome == "fooled"  # it saw only the bread: positive


HATE = "/t/hate-speech/write/"


@pytest.fixture
def inside(as_alice, hate):
    as_alice.post("/t/hate-speech/gate/")
    scripted_target(hate, label="not-hate", prob={"hate": 0.2, "not-hate": 0.8})
    return as_alice


def test_nothing_is_shown_before_the_gate(client, as_alice, hate):
    response = as_alice.get(HATE)
    assert response.status_code == 302
    gate = as_alice.get(response.url)
    assert "Zorbians" not in re.sub(r"<details.*?</details>", "", gate.text, flags=re.S)
    assert as_alice.post("/t/hate-speech/write/next/", {"want": "passage"}).status_code == 302
    as_alice.post("/t/hate-speech/gate/")
    assert as_alice.get(HATE).status_code == 200


def test_htmx_at_the_gate_gets_no_redirect(as_alice, hate):
    response = as_alice.get(HATE, **HTMX)
    assert response.status_code == 200
    assert response["HX-Redirect"].endswith("/gate/")


def test_hate_asks_for_type_and_target(inside):
    goal_is(inside, "hate", HATE)
    page = inside.get(HATE).text
    assert 'name="hate_type"' in page
    assert 'name="hate_target"' in page
    form = open_form(inside, HATE) | {"text": "Zorbians should all go away."}
    assert inside.post(HATE, form, **HTMX).status_code == 422
    kind = re.search(r'name="hate_type" value="([^"]+)"', page).group(1)
    target = re.search(r'name="hate_target" value="([^"]+)"', page).group(1)
    form |= {"hate_type": kind, "hate_target": [target]}
    assert inside.post(HATE, form, **HTMX).status_code == 200
    stored_inputs = Example.objects.get().inputs
    assert (stored_inputs["hate_type"], stored_inputs["hate_target"]) == (kind, [target])


def test_no_hate_asks_for_neither(inside):
    goal_is(inside, "not-hate", HATE)
    assert 'name="hate_type"' not in inside.get(HATE).text
    form = open_form(inside, HATE) | {"text": "Zorbians make good bread."}
    assert inside.post(HATE, form, **HTMX).status_code == 200


def test_the_history_of_a_sensitive_task_is_shielded(inside):
    goal_is(inside, "not-hate", HATE)
    form = open_form(inside, HATE) | {"text": "Zorbians make good bread."}
    inside.post(HATE, form)
    shielded = re.findall(r'<details class="shield">.*?</details>', inside.get(HATE).text, re.S)
    assert any("good bread" in text for text in shielded)


def test_minimal_edit_flips_somebody_elses_example(inside, client, bob, hate):
    goal_is(inside, "not-hate", HATE)
    form = open_form(inside, HATE) | {"text": "Zorbians make good bread."}
    inside.post(HATE, form, **HTMX)
    parent = Example.objects.get()
    client.force_login(bob)
    client.post("/t/hate-speech/gate/")
    refused = client.post("/t/hate-speech/write/next/", {"want": "edit"})
    assert refused.context["code"] == "no_context"  # the round may be sealed one day
    assert 'value="edit"' not in client.get(HATE).text
    second = next_round(hate)
    second.contexts.update(fields={"prompt": "Another one."}, digest="another")
    publish(parent)
    assert 'value="edit"' in client.get(HATE).text
    client.post("/t/hate-speech/write/next/", {"want": "edit"})
    page = client.get(HATE).text
    assert 'class="context parent"' in page
    assert "80% sure" in page
    assignment = Assignment.objects.get(annotator__user=bob, round=second, left_at=None)
    assert assignment.goal == "hate"
    kind = re.search(r'name="hate_type" value="([^"]+)"', page).group(1)
    target = re.search(r'name="hate_target" value="([^"]+)"', page).group(1)
    form = open_form(client, HATE, hate_type=kind, hate_target=[target])
    unchanged = form | {"text": "Zorbians make good bread."}
    assert client.post(HATE, unchanged, **HTMX).status_code == 422
    client.post(HATE, form | {"text": "Zorbians make foul bread."}, **HTMX)
    written = Example.objects.latest("pk")
    assert (written.parent, written.round, written.context.round) == (parent, second, second)
    assert written.context.fields == parent.context.fields
    assert written.context.is_retired  # for who changes its example alone


def test_an_ask_user_task_waits_for_the_author(as_alice, nli):
    task = nli.task
    task.config_text = re.sub(
        r"^verdict:.*?(?=^\w)", "verdict: {type: ask_user}\n", task.config_text, flags=re.S | re.M
    )
    task.save()
    assert task.config.verdict.type == "ask_user"
    scripted_target(nli, label="entailment")
    example = stored(as_alice)
    assert example.outcome == "undecided"
    as_alice.post(f"/attempt/{example.uuid}/answer/", {"model_right": "no"})
    example.refresh_from_db()
    assert example.outcome == "fooled"


def test_hidden_confidence_is_nowhere(as_alice, nli):
    task = nli.task
    task.config_text = re.sub(
        r"^limits:.*?(?=^\w|\Z)", "limits: {show_confidence: hidden}\n", task.config_text,
        flags=re.S | re.M,
    )  # fmt: skip
    if "show_confidence" not in task.config_text:
        task.config_text += "\nlimits: {show_confidence: hidden}\n"
    task.save()
    assert task.config.limits.show_confidence == "hidden"
    scripted_target(
        nli, label="entailment", prob={"entailment": 0.91, "neutral": 0.09, "contradiction": 0}
    )
    response = as_alice.post("/t/nli/write/", open_form(as_alice), **HTMX)
    assert "91" not in re.sub(r'value="[^"]*"|/attempt/[^"]*', "", response.text)


def test_try_out_keeps_nothing_and_says_so(client, nli):
    """Practice promises nothing: no count, no saved text, and the way to what counts."""
    target = scripted_target(
        nli, label="neutral", prob={"entailment": 0.03, "neutral": 0.95, "contradiction": 0.02}
    )
    assert 'id="practice"' in client.get("/t/nli/try/").text
    form = open_form(client, "/t/nli/try/") | {"goal": "neutral"}
    told = client.post("/t/nli/try/", form, **HTMX)
    assert (told.status_code, told.context["outcome"]) == (200, "not_fooled")
    assert 'href="/accounts/signup/?next=/t/nli/write/"' in told.text
    target.options = {"fail": "down"}
    target.save()
    failed = client.post("/t/nli/try/", form, **HTMX)
    assert failed.status_code == 503
    for said in (told.text, failed.text):
        assert not re.search("counts as|count as a try|is saved|is kept", said)
    assert not Example.objects.exists()
    assert not Assignment.objects.exists()


def test_practice_asks_its_visitor_for_no_verdict(client, nli):
    task = nli.task
    rule = re.search(r"^verdict:.*?(?=^\w)", task.config_text, re.S | re.M)[0]
    task.config_text = task.config_text.replace(rule, "verdict: {type: ask_user}\n")
    task.save()
    scripted_target(nli, label="entailment")
    told = client.post("/t/nli/try/", open_form(client, "/t/nli/try/"), **HTMX)
    assert told.context["outcome"] == "undecided"
    assert "model_right" not in told.text


def test_practice_is_no_way_around_the_draw(client, nli, alice):
    """What is found in practice cannot be submitted: its passages are drawn for nobody."""
    scripted_target(nli, label="entailment")
    form = open_form(client, "/t/nli/try/")
    shown = [one["premise"] for one in nli.task.config.practice_contexts]
    assert client.get("/t/nli/try/").context["context"].fields["premise"] in shown
    assert not nli.contexts.filter(fields__premise__in=shown).exists()
    for pk in (*nli.contexts.values_list("pk", flat=True), "", "-1", "x"):
        if str(pk) not in map(str, range(len(shown))):
            sent = client.post("/t/nli/try/", form | {"assignment": pk})
            assert sent.status_code == 404
    client.force_login(alice)
    assert client.post("/t/nli/keep/", {"keep": "x"}).status_code == 404


def test_nobody_practises_where_no_example_has_a_passage(client, nli):
    task = nli.task
    examples = re.search(r"^examples:.*?(?=^\w)", task.config_text, re.S | re.M)[0]
    task.config_text = task.config_text.replace(examples, "")
    task.save()
    scripted_target(nli, label="entailment")
    assert client.get("/t/nli/try/").context["message"]
    assert client.post("/t/nli/try/", {"assignment": "0"}).status_code == 404
    assert "/t/nli/try/" not in client.get("/t/nli/").text


def test_try_out_has_a_limit(client, nli):
    scripted_target(nli, label="entailment")
    form = open_form(client, "/t/nli/try/")
    answers = [client.post("/t/nli/try/", form, **HTMX).status_code for _ in range(21)]
    assert answers == [200] * 20 + [429]


def test_a_task_for_members_only_does_not_exist_for_others(client, as_alice, nli):
    nli.task.is_visible = False
    nli.task.save()
    for path in ("", "write/", "try/", "gate/"):
        assert client.get(f"/t/nli/{path}").status_code == 404
    assert TaskFactory._meta.model.objects.count() == 1


@pytest.mark.parametrize(
    ("context", "gives"),
    [
        ("[]", "nothing"),
        ("[{name: start, type: text}]", "prompt"),
        ("[{name: start, type: text}, {name: passage, type: text}]", "passage"),
    ],
)
def test_words_are_those_of_the_tasks_shape(as_alice, nli, bob, context, gives):
    """No passage is spoken of where there is none."""
    support = "" if gives == "nothing" else "support: {prompt_field: start}"
    text = f"""
version: 1
name: Shape
goal: {{text: Write something}}
context: {context}
input:
  - {{name: text, type: long_text}}
  - {{name: label, type: multiclass, labels: [a, b]}}
output: [label]
verdict: {{type: exact_match, fields: [label]}}
metrics: {{main: accuracy}}
limits: {{tries_per_context: 1}}
{support}
"""
    TaskFactory._meta.model.objects.update(config_text=text)
    nli.task.refresh_from_db()
    assert nli.task.config.context_role == gives
    nli.contexts.update(fields={"start": "Once upon a time", "passage": "It rained."})
    scripted_target(nli, label="b")
    page = as_alice.get("/t/nli/write/")
    form = open_form(as_alice) | {"text": "Something new.", "label": "a"}
    result = as_alice.post("/t/nli/write/", form, **HTMX)
    assert result.context["outcome"] == "fooled"
    again = form | {"attempt_key": "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10", "text": "More."}
    over = as_alice.post("/t/nli/write/", again, **HTMX)
    assert over.status_code == 429
    client = Client()
    client.force_login(bob)
    judge = client.get("/t/nli/judge/")
    for reply in (page, result, over, judge):
        words = re.sub(r'<[^>]*>|"[^"]*"', " ", reply.text)
        assert gives == "passage" or "assage" not in words
    assert ("Another passage" in page.text) == (gives == "passage")
    assert ('want" value="passage' in page.text) == (gives != "nothing")
