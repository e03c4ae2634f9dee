"""The write page: one text, one verdict, whatever the browser sends."""

import re
import uuid

import pytest

from annotation.models import Assignment, Attempt, Example, Report, TargetOutput
from core.accounts.services import get_annotator
from tasks.models import Round
from tests.support.factories import ContextFactory, scripted_target
from tests.support.writing import NLI_PROB, URL, goal_is, open_form, stored
from tests.web.conftest import HTMX
from validation.models import RoundPolicy


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_a_fooled_model_is_told_at_once(as_alice, alice, nli, headers):
    scripted_target(nli, output={"label": "entailment"}, prob=NLI_PROB)
    goal_is(as_alice, "neutral")
    response = as_alice.post(URL, open_form(as_alice), follow=not headers, **headers)
    assert response.status_code == 200
    assert 'class="verdict fooled"' in response.text
    assert "91%" in response.text
    assert ("<html" in response.text) == (not headers)
    example = Example.objects.get()
    assert example.outcome == "fooled"
    assert example.annotator == get_annotator(alice)
    assert example.inputs == {"hypothesis": "The shop was open at ten.", "label": "neutral"}
    output = TargetOutput.objects.get()
    assert output.output == {"label": "entailment"}
    assert output.fooled is True
    assert output.version.digest


def test_a_model_that_is_right_is_no_failure_of_the_person(as_alice, nli):
    scripted_target(nli, output={"label": "entailment"}, prob=NLI_PROB)
    goal_is(as_alice, "entailment")
    response = as_alice.post(URL, open_form(as_alice), **HTMX)
    assert 'class="verdict not_fooled"' in response.text
    assert response.context["own_chance"] == "91%"
    assert Example.objects.get().outcome == "not_fooled"


def test_forged_fields_change_nothing(as_alice, alice, bob, nli):
    scripted_target(nli, output={"label": "entailment"}, prob=NLI_PROB)
    goal_is(as_alice, "entailment")
    forged = {
        "fooled": "1",
        "outcome": "fooled",
        "model_wrong": "true",
        "output": '{"label": "neutral"}',
        "model_url": "http://evil.test/",
        "target": "evil",
        "user": str(bob.pk),
        "annotator": str(get_annotator(bob).pk),
        "label": "neutral",
    }
    as_alice.post(URL, open_form(as_alice, **forged), **HTMX)
    example = Example.objects.get()
    assert example.outcome == "not_fooled"
    assert example.inputs["label"] == "entailment"
    assert example.annotator == get_annotator(alice)


def test_another_goal_than_the_servers_is_refused(as_alice, nli):
    scripted_target(nli, output={"label": "entailment"})
    goal_is(as_alice, "entailment")
    response = as_alice.post(URL, open_form(as_alice, goal="neutral"), **HTMX)
    assert response.status_code == 409
    assert not Example.objects.exists()


def test_a_double_submit_is_one_row_and_one_call(as_alice, nli, monkeypatch):
    from tasks.targets.endpoints import scripted

    calls = []
    ask = scripted.ScriptedEndpoint.predict

    def counted(self, batch, *, deadline_seconds):
        calls.append(batch)
        return ask(self, batch, deadline_seconds=deadline_seconds)

    monkeypatch.setattr(scripted.ScriptedEndpoint, "predict", counted)
    scripted_target(nli, output={"label": "entailment"}, prob=NLI_PROB)
    goal_is(as_alice, "neutral")
    form = open_form(as_alice)
    first = as_alice.post(URL, form, **HTMX)
    again = as_alice.post(URL, form, **HTMX)
    assert first.status_code == again.status_code == 200
    assert 'class="verdict fooled"' in again.text
    assert len(calls) == Example.objects.count() == 1


@pytest.mark.parametrize("reason", ["down", "slow", "busy", "rubbish", "misconfigured"])
def test_a_failing_target_stores_nothing_and_loses_nothing(as_alice, nli, reason):
    scripted_target(nli, fail=reason, name=f"fails-{reason}", label="entailment")
    form = open_form(as_alice)
    response = as_alice.post(URL, form, **HTMX)
    assert response.status_code == 503
    assert response["Retry-After"]
    assert 'id="failed"' in response.text
    assert not Example.objects.exists()
    assert "The shop was open at ten." in as_alice.get(URL).text  # the draft
    assert "Try 1 of" in as_alice.get(URL).text


def test_after_a_failure_the_same_form_works(as_alice, nli):
    target = scripted_target(nli, fail="down", label="entailment")
    form = open_form(as_alice)
    assert as_alice.post(URL, form, **HTMX).status_code == 503
    target.options = {"label": "entailment", "prob": NLI_PROB}
    target.save()
    assert as_alice.post(URL, form, **HTMX).status_code == 200
    assert Example.objects.count() == Attempt.objects.count() == 1


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_an_empty_text_is_named_and_nothing_is_lost(as_alice, nli, headers):
    scripted_target(nli, label="entailment")
    response = as_alice.post(URL, open_form(as_alice, text="Hm"), **headers)
    assert response.status_code == 422
    assert 'id="error-summary"' in response.text
    assert "<title>Error:" in response.text
    assert 'value="Hm"' in response.text or ">\nHm</textarea>" in response.text


def test_the_same_text_again_is_pointed_out(as_alice, nli):
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    as_alice.post(URL, open_form(as_alice), **HTMX)
    response = as_alice.post(URL, open_form(as_alice), **HTMX)
    assert response.status_code == 422
    assert 'data-code="duplicate"' in response.text
    assert str(Example.objects.get().uuid) in response.text


def test_ten_tries_a_passage(as_alice, alice, nli):
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    for number in range(10):
        response = as_alice.post(URL, open_form(as_alice, text=f"Statement {number} here."), **HTMX)
        assert response.status_code == 200
    response = as_alice.post(URL, open_form(as_alice, text="Statement ten here."), **HTMX)
    assert response.status_code == 429
    assert 'data-code="cap"' in response.text


def test_a_closed_round_keeps_the_text(as_alice, nli):
    scripted_target(nli, label="entailment")
    form = open_form(as_alice)
    Round.objects.update(state="paused")
    response = as_alice.post(URL, form, **HTMX)
    assert response.status_code == 410
    assert not Example.objects.exists()


def test_a_paused_round_says_so_before_the_work(as_alice, nli):
    open_form(as_alice)
    Round.objects.update(state="paused")
    page = as_alice.get(URL)
    assert 'data-code="paused"' in page.text
    assert 'id="write-form"' not in page.text
    Assignment.objects.update(draft={"hypothesis": "Half of a sent"})
    page = as_alice.get(URL)
    assert 'id="paused"' in page.text
    assert "Half of a sent" in page.text


def test_the_goal_stays_until_another_is_asked_for(as_alice, nli):
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    form = open_form(as_alice)
    as_alice.post(URL, form, **HTMX)
    assert open_form(as_alice)["goal"] == form["goal"]
    as_alice.post("/t/nli/write/next/", {"want": "goal"}, **HTMX)
    assert open_form(as_alice)["goal"] != form["goal"]
    assert open_form(as_alice)["assignment"] == form["assignment"]


def test_another_passage_is_another(as_alice, nli):
    before = Assignment.objects.count()
    first = open_form(as_alice)["assignment"]
    response = as_alice.post("/t/nli/write/next/", {"want": "passage"}, **HTMX)
    assert response.status_code == 200
    assert 'id="work"' in response.text
    assert open_form(as_alice)["assignment"] != first
    contexts = Assignment.objects.values_list("context", flat=True)
    assert len(set(contexts)) == len(contexts) == before + 2


def test_a_text_of_another_passage_is_told_and_kept(as_alice, nli):
    scripted_target(nli, output={"label": "entailment"})
    form = open_form(as_alice)
    text = form.pop("hypothesis")
    restored = {**form, "hypothesis--7": text}
    response = as_alice.post(URL, restored)
    assert 'data-code="stale"' in response.text
    assert text in response.text
    assert not Attempt.objects.exists()
    draft = f"/draft/{form['assignment']}/"
    as_alice.post(draft, restored, **HTMX)
    assert not Assignment.objects.get().draft
    own = {**form, f"hypothesis--{form['assignment']}": text}
    as_alice.post(draft, own, **HTMX)
    assert Assignment.objects.get().draft == {"hypothesis": text}
    as_alice.post(URL, own, **HTMX)
    assert Example.objects.get().inputs["hypothesis"] == text


def test_a_form_of_a_left_passage_is_stale(as_alice, nli):
    scripted_target(nli, label="entailment")
    form = open_form(as_alice)
    as_alice.post("/t/nli/write/next/", {"want": "passage"})
    response = as_alice.post(URL, form, **HTMX)
    assert response.status_code == 409
    assert 'data-code="stale"' in response.text
    assert f'<a href="{URL}">' in response.text  # the way to what is asked now
    assert not Example.objects.exists()


def test_somebody_elses_assignment_is_not_found(as_alice, bob, client, nli):
    scripted_target(nli, label="entailment")
    form = open_form(as_alice)
    client.force_login(bob)
    assert client.post(URL, form, **HTMX).status_code == 404


def test_an_assignment_of_another_task_is_not_found(as_alice, nli, sentiment):
    form = open_form(as_alice)
    assert as_alice.post("/t/sentiment/write/", form, **HTMX).status_code == 404


def test_signed_out_htmx_gets_401_and_no_redirect(client, nli):
    response = client.post(URL, {"hypothesis": "x"}, **HTMX)
    assert response.status_code == 401
    assert 'id="signed-out"' in response.text
    assert "<form" not in response.text


def test_a_draft_survives(as_alice, nli):
    form = open_form(as_alice)
    response = as_alice.post(f"/draft/{form['assignment']}/", {"hypothesis": "Half a sen"}, **HTMX)
    assert "Draft saved" in response.text
    as_alice.logout()
    as_alice.force_login(annotator_user())
    assert "Half a sen" in as_alice.get(URL).text


def annotator_user():
    from core.accounts.models import User

    return User.objects.get(email="alice@example.com")


def test_why_is_kept(as_alice, nli):
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    example = stored(as_alice)
    page = as_alice.get(f"/attempt/{example.uuid}/").text
    name, value = re.search(r'type="checkbox" name="(\w+)" value="([^"]+)"', page).groups()
    response = as_alice.post(f"/attempt/{example.uuid}/why/", {name: [value]}, **HTMX)
    assert "Reason saved" in response.text
    example.refresh_from_db()
    assert example.metadata == {name: [value]}


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_retract_twice_is_once(as_alice, nli, headers):
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    example = stored(as_alice)
    url = f"/attempt/{example.uuid}/retract/"
    assert 'id="retract-title"' in as_alice.get(url).text
    first = as_alice.post(url, follow=not headers, **headers)
    assert 'id="withdrawn"' in first.text
    example.refresh_from_db()
    when = example.retracted_at
    as_alice.post(url, **headers)
    example.refresh_from_db()
    assert example.retracted_at == when


def test_a_judged_example_cannot_be_retracted(as_alice, bob, nli):
    """Check 27: Retract is there until the first judgement, and refused after it."""
    from validation.models import Validation

    scripted_target(nli, label="entailment", prob=NLI_PROB)
    example = stored(as_alice)
    assert 'id="retract"' in as_alice.get(f"/attempt/{example.uuid}/").text
    Validation.objects.create(example=example, validator=get_annotator(bob), verdict="correct")
    assert 'id="retract"' not in as_alice.get(f"/attempt/{example.uuid}/").text
    response = as_alice.post(f"/attempt/{example.uuid}/retract/", **HTMX)
    assert response.status_code == 403
    example.refresh_from_db()
    assert example.retracted_at is None


@pytest.mark.parametrize("path", ["", "why/", "retract/", "answer/", "saliency/"])
def test_others_attempts_do_not_exist_for_me(as_alice, bob, client, nli, path):
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    example = stored(as_alice)
    client.force_login(bob)
    get, post = client.get, client.post
    url = f"/attempt/{example.uuid}/{path}"
    assert {get(url).status_code, post(url).status_code} <= {404, 405}


def test_edit_and_retry_chains(as_alice, nli):
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    first = stored(as_alice)
    page = as_alice.get(f"{URL}?retry={first.uuid}", **HTMX)
    assert first.inputs["hypothesis"] in page.text
    second = stored(as_alice, text="The shop was open at noon.", parent=str(first.uuid))
    assert second.parent == first


def test_a_parent_of_somebody_else_is_ignored(as_alice, client, bob, nli):
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    first = stored(as_alice)
    client.force_login(bob)
    second = stored(client, text="Bob wrote this one.", parent=str(first.uuid))
    assert second.parent is None


def test_flag_a_passage(as_alice, nli):
    form = open_form(as_alice)
    context = Assignment.objects.get(pk=form["assignment"]).context
    url = f"/context/{context.pk}/report/"
    assert context.fields["premise"] in as_alice.get(url).text  # one sees what one flags
    unsaid = as_alice.post(url, {}, **HTMX)
    assert unsaid.status_code == 422
    assert context.fields["premise"] in unsaid.text
    response = as_alice.post(url, {"reason": "broken", "comment": "It ends mid-word"}, **HTMX)
    assert "Thank you" in response.text
    assert Report.objects.get().reason == "broken"
    other = ContextFactory(round=nli)
    assert as_alice.get(f"/context/{other.pk}/report/").status_code == 404


def test_an_ensemble_is_judged_by_the_rounds_rule(as_alice, nli):
    Round.objects.update(rule="any", show_target_name=False)
    scripted_target(nli, name="right", label="neutral", prob=None)
    scripted_target(nli, name="wrong", label="entailment", prob=None)
    goal_is(as_alice, "neutral")
    text = as_alice.post(URL, open_form(as_alice), **HTMX).text
    assert 'class="verdict fooled"' in text
    assert "Model A" in text
    assert "Model B" in text
    assert TargetOutput.objects.filter(fooled=True).count() == 1


def test_a_round_without_targets_stores(as_alice, nli):
    response = as_alice.post(URL, open_form(as_alice), **HTMX)
    assert 'class="verdict no_model"' in response.text
    assert Example.objects.get().outcome == "no_model"


def test_nothing_left_to_write_about(as_alice, nli):
    nli.contexts.update(is_retired=True)
    response = as_alice.get(URL)
    assert response.status_code == 200
    assert 'data-code="no_context"' in response.text


def test_an_unknown_key_makes_no_500(as_alice, nli):
    form = open_form(as_alice, attempt_key="x")
    assert as_alice.post(URL, form, **HTMX).status_code == 422
    assert as_alice.post(URL, {**form, "assignment": "x"}, **HTMX).status_code == 404
    assert as_alice.post(URL, {**form, "assignment": "9" * 25}, **HTMX).status_code == 404
    assert as_alice.get(f"/attempt/{uuid.uuid4()}/").status_code == 404


def test_a_zombie_cannot_store_what_was_asked_anew(as_alice, alice, nli):
    from annotation.attempts.services import begin_attempt, fail_attempt, finish_attempt
    from annotation.context_picking.services import assign
    from tasks.targets.endpoints.base import Prediction

    scripted_target(nli, label="entailment")
    annotator = get_annotator(alice)
    assignment = assign(annotator=annotator, round=nli)
    key, inputs = uuid.uuid4(), {"hypothesis": "Twice asked.", "label": assignment.goal}

    def begin():
        return begin_attempt(annotator=annotator, assignment=assignment, key=key, inputs=inputs)[0]

    zombie = begin()
    fail_attempt(attempt=zombie, reason="slow")
    current = begin()
    answer = Prediction(
        output={"label": "neutral"}, prob=None, seconds=0.1, fingerprint={"digest": "d"}
    )
    entries = list(nli.round_targets.select_related("target"))
    assert finish_attempt(attempt=zombie, targets=entries, predictions=[answer]) is None
    assert not Example.objects.exists()
    assert finish_attempt(attempt=current, targets=entries, predictions=[answer])


def test_a_page_left_waiting_fails_after_the_deadline(as_alice, alice, nli):
    """As after a killed web process: nobody will ever finish the attempt."""
    from datetime import timedelta

    from django.utils import timezone

    from annotation import selectors
    from annotation.attempts.services import begin_attempt
    from annotation.context_picking.services import assign

    assignment = assign(annotator=get_annotator(alice), round=nli)
    attempt, _ = begin_attempt(
        annotator=get_annotator(alice),
        assignment=assignment,
        key=uuid.uuid4(),
        inputs={"hypothesis": "Still there?", "label": assignment.goal},
    )
    waiting = as_alice.get(f"/attempt/{attempt.uuid}/")
    assert waiting.status_code == 202
    assert waiting["Refresh"]
    Attempt.objects.update(asked_at=timezone.now() - timedelta(seconds=91))
    used = selectors.count_usage(assignment)
    assert selectors.add_submitting_texts(assignment, used)[0][:2] == (
        0,
        0,
    )  # it never counts against the caps
    failed = as_alice.get(f"/attempt/{attempt.uuid}/")
    assert failed.status_code == 503
    assert "Still there?" in failed.text


def test_a_target_without_a_digest_of_its_own_is_known_by_what_it_says(as_alice, nli, monkeypatch):
    from tasks.models import TargetVersion
    from tasks.targets.endpoints import scripted
    from tasks.targets.endpoints.base import Prediction

    answer = Prediction(
        output={"label": "neutral"}, prob=None, seconds=0.1, fingerprint={"model": "chat-1"}
    )
    monkeypatch.setattr(scripted.ScriptedEndpoint, "predict", lambda *a, **k: [answer])
    scripted_target(nli, label="neutral")
    stored(as_alice)
    stored(as_alice, text="Another statement.")
    assert TargetVersion.objects.get().fingerprint == {"model": "chat-1"}


def test_an_answer_that_cannot_be_stored_leaves_nobody_waiting(as_alice, nli, monkeypatch):
    from annotation.attempts import services

    def broken(*args, **kwargs):
        raise RuntimeError("as scripted")

    monkeypatch.setattr(services, "judge_outputs", broken)
    scripted_target(nli, label="neutral")
    form = open_form(as_alice)
    as_alice.raise_request_exception = False
    assert as_alice.post(URL, form, **HTMX).status_code == 500
    assert Attempt.objects.get().state == "failed"


def test_a_busy_database_is_no_error(as_alice, nli, monkeypatch):
    from django.db import OperationalError

    from annotation.attempts import services

    def busy(**kwargs):
        raise OperationalError("canceling statement due to lock timeout")

    monkeypatch.setattr(services, "begin_attempt", busy)
    response = as_alice.post(URL, open_form(as_alice), **HTMX)
    assert response.status_code == 503
    assert response["Retry-After"]


@pytest.mark.parametrize("code", ["nli", "sentiment", "qa"])
def test_a_saved_verdict_shows_what_was_written(as_alice, request, code):
    """Without a script each verdict is this page: neither the prompt nor an empty form."""
    round = request.getfixturevalue(code)
    answers = {"qa": {"output": {"answer": "1840", "start": 22, "end": 26}}}
    scripted_target(round, **answers.get(code, {"label": "neutral"}))
    url, field = f"/t/{code}/write/", {"nli": "hypothesis", "sentiment": "text", "qa": "question"}
    text = "When did Ada leave the town?"
    form = open_form(as_alice, url) | {field[code]: text}
    form |= {"answer": "1850"} if code == "qa" else {}
    page = as_alice.post(url, form, follow=True)
    assert page.redirect_chain, page.text
    shown = page.context["form"]
    assert shown[field[code]].value() == text
    assert code != "qa" or shown["answer"].value() == "1850"
    assert "data-draft-key" not in page.text  # a later draft does not take its place
    as_alice.post(f"/t/{code}/write/next/", {"want": "goal"})
    assert as_alice.get(page.redirect_chain[-1][0]).context["work"].goal == form["goal"]


def test_without_a_script_a_failed_try_keeps_its_text_in_the_form(as_alice, nli):
    scripted_target(nli, fail="down")
    page = as_alice.post(URL, open_form(as_alice, text="This text is not lost."))
    assert page.status_code == 503
    assert page.context["form"]["hypothesis"].value() == "This text is not lost."


def test_what_is_typed_is_stored_in_nfc(as_alice, nli):
    scripted_target(nli, output={"label": "entailment"}, prob=NLI_PROB)
    example = stored(as_alice, text="The cafe\u0301 was open at ten.")
    assert example.inputs["hypothesis"] == "The caf\u00e9 was open at ten."


def test_a_verdict_says_how_many_decide_in_this_round(as_alice, nli):
    """By the policy that its owner set for it, also where the configuration says another number."""
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    policy = {"rule": "n-equal", "needed": 7, "of": None, "threshold": 0.8}
    RoundPolicy.objects.create(round=nli, policy=policy)
    told = as_alice.post(URL, open_form(as_alice), **HTMX)
    assert told.context["needed"] == 7
    example = Example.objects.latest("pk")
    assert as_alice.get(f"/attempt/{example.uuid}/").context["needed"] == 7
