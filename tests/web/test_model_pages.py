"""Pages of submitted models: the model's page for every role, what its owner does."""

import re
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Example, TargetOutput
from core.accounts.models import Annotator
from evaluation.contract import SetRow
from evaluation.isolation.queue import leases
from evaluation.models import EvaluationRun, EvaluationSet, Score, Submission
from evaluation.runs.services import ensure_target_submissions
from evaluation.submissions.progress import OTHER_STEPS, STEPS, Progress, describe_next_step
from evaluation.submissions.results import find_extreme_slices
from evaluation.templatetags.model_words import ENDINGS
from evaluation.test_sets.services import create_set, make_version
from leaderboard.rounds.standing import find_model_standing
from tasks.models import RoundTarget, TargetVersion, TaskMember
from tests.support.boards import fill_board, measured
from tests.support.evaluations import accepted_model
from tests.support.factories import RoundFactory, TaskFactory, UserFactory, scripted_target
from tests.support.query_counts import check
from tests.support.submissions import answered, make_set, release_of, scored, submission_of, url_of
from tests.web.conftest import HTMX
from validation.decisions.consensus_rows import derive_consensus
from validation.models import Validation

State = Submission.State


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def task(db):
    return TaskFactory(code="nli", name="Natural language inference")


@pytest.fixture
def people(db):
    return Annotator.objects.bulk_create([Annotator(pseudonym=f"w-{n}") for n in range(4)])


@pytest.fixture
def model(task, alice):
    """Alice's model, accepted and scored on an open and on a hidden set."""
    submission = submission_of(task, alice, state=State.DONE, outcome="ok", digest="d" * 64)
    scored(submission, make_set(task, "open", may_leave=True))
    scored(submission, make_set(task, "sealed", access="hidden"), accuracy=0.375)
    return submission


# Who sees what


ROLES = ["owner", "task owner", "editor", "reviewer", "viewer", "somebody", "stranger"]
INSIDE = {"owner", "task owner", "editor"}
TASK_OWNERS = {"task owner", "editor"}


def visit_as(client, role, model):
    """Sign in as somebody in that role; the model's owner is alice."""
    if role == "owner":
        client.force_login(model.owner)
    elif role != "stranger":
        person = UserFactory()
        if role != "somebody":
            name = "owner" if role == "task owner" else role
            TaskMember.objects.create(task=model.task, user=person, role=name)
        client.force_login(person)
    return client


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("anonymous", [False, True])
def test_every_role_sees_what_it_may(client, model, role, published, anonymous):
    until = timezone.now().date() + timedelta(days=9) if anonymous else None
    Submission.objects.filter(pk=model.pk).update(
        is_published=published, anonymous_until=until, paper_url="https://paper.example"
    )
    pseudonym = str(model.owner.annotator)
    client = visit_as(client, role, model)
    reply = client.get(url_of(model))
    listed = client.get("/t/nli/models/").text
    inside = role in INSIDE
    if not inside and not published:
        assert reply.status_code == 404
        assert str(model.pk) not in listed
        return
    assert reply.status_code == 200
    names_shown = inside or not anonymous
    for words in ("MiniLM seed 1", pseudonym, "https://paper.example"):
        assert (words in reply.text) == names_shown
    if published:
        assert ("MiniLM seed 1" in listed) == (pseudonym in listed) == names_shown
        assert "62.5%" in listed
        assert ("37.5%" in listed) == (role in TASK_OWNERS)
    else:
        assert str(model.pk) not in listed
    assert "62.5%" in reply.text
    sees_hidden = role in TASK_OWNERS
    assert ("37.5%" in reply.text) == ("sealed" in reply.text) == sees_hidden
    assert reply.context["hidden"] == (0 if sees_hidden else 1)
    shown = reply.text.partition('id="main"')[2]  # the header names whoever reads the page
    assert "alice@example.com" not in shown + listed.partition('id="main"')[2]
    assert ("Withdraw…" in reply.text) == (role == "owner")


@pytest.mark.parametrize("role", ROLES)
def test_every_role_may_do_what_it_may(client, model, role):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    client = visit_as(client, role, model)
    mine, nobody = role == "owner", role == "stranger"
    for action in ("card/", "withdraw/"):
        assert client.get(url_of(model, action)).status_code == (
            302 if nobody else 200 if mine else 404
        )
    for action in ("unpublish/", "publish/", "cancel/", "anonymous/", "card/", "withdraw/"):
        status = client.post(url_of(model, action), {"license": "MIT"}).status_code
        assert status == (302 if mine or nobody else 404)
    assert Submission.objects.filter(withdrawn_at=None).exists() != mine


@pytest.mark.parametrize("role", ROLES)
def test_every_role_reads_the_logs_it_may(client, model, role):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    open_run, hidden_run = model.runs.order_by("version__evaluation_set__name")
    client = visit_as(client, role, model)
    for run, allowed in ((open_run, INSIDE), (hidden_run, TASK_OWNERS)):
        expected = 302 if role == "stranger" else 200 if role in allowed else 404
        for query in ("", "?download"):
            reply = client.get(url_of(model, f"runs/{run.pk}/{query}"))
            assert reply.status_code == expected
            assert ("Loading weights" in reply.text) == (expected == 200)
        model.runs.filter(pk=run.pk).update(outcome="infrastructure", state="failed")
        again = client.post(url_of(model, f"runs/{run.pk}/again/"))
        assert again.status_code == (302 if role in allowed or role == "stranger" else 404)
        assert run.submission.runs.filter(version=run.version).count() == (
            2 if role in allowed else 1
        )


def test_hidden_tasks_hide_their_models(client, bob, model):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    model.task.is_visible = False
    model.task.save(update_fields=["is_visible"])
    client.force_login(bob)
    assert client.get(url_of(model)).status_code == 404
    assert client.get("/t/nli/models/").status_code == 404


def test_a_run_of_another_model_is_not_there(as_alice, alice, task, model):
    other = submission_of(task, alice)
    assert as_alice.get(url_of(other, f"runs/{model.runs.first().pk}/")).status_code == 404


# The model's page


def test_the_page_shows_what_was_measured(as_alice, model):
    version = model.runs.get(version__evaluation_set__name="open").version
    Score.objects.create(
        run=model.runs.get(version=version), metric="accuracy", slice="tag=negation",
        value=0.25, low=0.1, high=0.5, n=4,
    )  # fmt: skip
    run = scored(
        model, version, "robustness", accuracy_before=0.625, accuracy_after=0.5, drop=0.125,
        consistency=0.75, worst_case=0.25,
    )  # fmt: skip
    Score.objects.create(run=run, metric="drop", kind="upper_case", value=0.5, low=0, high=1, n=6)
    page = as_alice.get(url_of(model)).text
    for words in (
        "62.5%", "52.5–72.5", "6 examples", "tag=negation", "25.0%", "51.3", "0.50 GiB",
        "process",
        "Perturbed: robustness", "Upper case", "All kinds", "Consistency", "Worst case",
        "<strong>75.0</strong>",
    ):  # fmt: skip
        assert words in page, words


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("release", ["none", "public", "private", "hidden"])
def test_what_was_wrong_is_for_who_may_know_what_is_right(client, model, role, release):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    name = "sealed" if release == "hidden" else "open"
    run = model.runs.get(version__evaluation_set__name=name)
    answered(run, *["entailment"] * 4, "neutral", "contradiction")
    if release != "none":
        release_of(run.version, private_test=release == "private")
    client = visit_as(client, role, model)
    page = client.get(url_of(model, f"runs/{run.pk}/wrong/"))
    allowed = role in TASK_OWNERS or release == "public"
    assert page.status_code == (200 if allowed else 404)
    own = client.get(url_of(model)).text
    assert (f"runs/{run.pk}/wrong/" in own) == allowed
    assert ('id="failures"' in own) == allowed
    assert ("Premise 4." in own) == allowed
    if allowed:
        assert "Premise 4." in page.text
        assert "Premise 5." in page.text
        assert "Premise 3." not in page.text
        assert model.task.config.display("label", "neutral") in page.text


def test_what_was_wrong_comes_in_pages(as_alice, model, monkeypatch):
    monkeypatch.setattr("evaluation.submissions.mistakes.PAGE_SIZE", 2)
    run = model.runs.get(version__evaluation_set__name="open")
    release_of(run.version, private_test=False)
    answered(run, "entailment", "neutral", "neutral", "neutral", "entailment", "entailment")
    url = url_of(model, f"runs/{run.pk}/wrong/")
    first, second = as_alice.get(url).text, as_alice.get(f"{url}?page=2").text
    assert ("Premise 2." in first, "Premise 3." in first, "page=2" in first) == (True, False, True)
    assert ("Premise 2." in second, "Premise 3." in second) == (False, True)
    assert "page=3" not in second
    assert as_alice.get(f"{url}?page=3").status_code == 404
    perturbed = scored(model, run.version, "robustness", consistency=1.0)
    answered(perturbed, "neutral")
    assert as_alice.get(url_of(model, f"runs/{perturbed.pk}/wrong/")).status_code == 404


def test_texts_of_a_sensitive_task_are_behind_a_shield(as_alice, alice):
    task = TaskFactory(code="hate-speech")
    rows = [SetRow("u", {"text": "Some words."}, ("hate",))]
    version = make_version(
        create_set(task=task, name="open", actor=None, may_leave=True), rows, None
    )
    release_of(version)
    run = scored(submission_of(task, alice, state=State.DONE), version)
    answered(run, None)
    page = as_alice.get(url_of(run.submission, f"runs/{run.pk}/wrong/")).text
    shield = page.index('<details class="shield">')
    assert shield < page.index("Some words.") < page.index("</details>", shield)


def test_the_page_says_how_a_model_stands(client, as_alice, alice, task):
    fill_board(task)
    private = accepted_model(task, alice, name="Private")
    for one in task.evaluation_sets.all():
        measured(private, one.versions.get(), 0.5, speed=20.0)
    best = Submission.objects.get(name="Model 2")
    found = find_model_standing(best, AnonymousUser())
    assert (found.row.rank, found.ranked_count) == ("1", 3)
    strips = {one.title: one.strip for one in found.metrics}
    for title, place in (("Accuracy", "100%"), ("Throughput", "0%")):
        assert strips[title].count('class="other tick"') == 3  # all models
        assert strips[title].count('class="people tick"') == 1  # their median
        assert f'<svg x="{place}" y="50%"><path class="chosen dot"' in strips[title]
    assert find_model_standing(private, AnonymousUser()) is None
    assert find_model_standing(private, alice).ranked_count == 4
    assert 'id="standing"' in client.get(url_of(best)).text
    assert 'id="standing"' in as_alice.get(url_of(private)).text


@pytest.mark.usefixtures("few_are_enough")
def test_a_targets_page_tells_its_rounds(as_alice, nli, people):
    target = scripted_target(nli, name="nli-target")
    version = TargetVersion.objects.create(target=target, digest="d" * 64)
    other = RoundFactory(task=nli.task, number=2, state="draft")
    RoundTarget.objects.create(round=other, target=target, position=0)
    for number in range(4):
        example = Example.objects.create(
            round=nli, context=nli.contexts.first(), annotator=people[0], digest=str(number),
            inputs={"hypothesis": f"{number}.", "label": "neutral"}, outcome="fooled",
        )  # fmt: skip
        TargetOutput.objects.create(
            example=example, target=target, version=version, output={"label": "entailment"},
            seconds=0.1, fooled=number < 2,
        )  # fmt: skip
        for who in people[1:4]:
            Validation.objects.create(
                example=example, validator=who, author_id=people[0].pk, label="neutral"
            )
        derive_consensus(example, list(example.validations.all()))
    (submission,) = ensure_target_submissions(nli.task)
    page = as_alice.get(url_of(submission)).text
    table = page[page.index('id="in-the-loop"') :]
    assert "50.0%" in table
    assert table.count('<th scope="row">') == 1
    assert 'id="try-to-fool"' in page
    part = as_alice.get(url_of(submission), **HTMX).text
    assert 'id="in-the-loop"' not in part


def test_a_failed_run_says_why(as_alice, task, alice):
    submission = submission_of(task, alice, state=State.DONE, outcome="ok")
    EvaluationRun.objects.create(
        submission=submission, version=make_set(task, "open"), state=State.FAILED, outcome="oom",
        error="It was ended at 8 GiB.", limit="8 GiB of memory", measured="8.0 GiB",
    )  # fmt: skip
    page = as_alice.get(url_of(submission))
    for words in (ENDINGS["oom"], "It was ended at 8 GiB.", "8 GiB of memory", "8.0 GiB"):
        assert words in page.text
    assert page.context["progress"].phase == "failed"
    assert "every 5s" not in page.text


def test_a_refused_model_shows_each_line_and_its_log_inert(as_alice, task, alice):
    submission = submission_of(
        task, alice, state=State.FAILED, outcome="invalid_output",
        error="Line 1: no label\nLine 2: <b>", log="<script>alert(1)</script> {{ 7 }}",
    )  # fmt: skip
    page = as_alice.get(url_of(submission)).text
    assert "Line 1: no label\nLine 2: &lt;b&gt;" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; {{ 7 }}" in page
    assert 'id="submit-again"' in page


def test_a_model_without_scores_says_what_happens_next(as_alice, client, alice, task):
    """One notice, and no section without content."""
    accepted = submission_of(task, alice, state=State.DONE, is_published=True)
    waiting = submission_of(task, alice, state=State.DONE, is_published=True)
    EvaluationRun.objects.create(submission=waiting, version=make_set(task, "waits"))
    for submission in (accepted, waiting):
        page = as_alice.get(url_of(submission))
        assert page.context["next_step"]
        assert page.context["results"] == []
        assert page.text.count('id="no-score"') == 1
        assert 'id="standing"' not in page.text
        assert "/compare/?a=" not in page.text
    client.logout()
    assert 'id="no-score"' in client.get(url_of(waiting)).text
    version = waiting.runs.get().version
    waiting.runs.all().delete()
    scored(waiting, version)
    assert 'id="no-score"' not in client.get(url_of(waiting)).text


@pytest.mark.parametrize("phase", [*STEPS, *OTHER_STEPS])
def test_each_state_of_a_model_has_a_next_step(phase):
    is_over = phase not in ("received", "checking", "queued", "running")
    if phase != "withdrawn":  # its page is a tombstone
        assert describe_next_step(Progress(phase, "", is_over=is_over))


def test_the_state_is_polled_until_it_is_over(as_alice, task, alice):
    submission = submission_of(task, alice, requested_by=alice)
    url = url_of(submission)
    part = as_alice.get(url, **HTMX)
    assert part.text.lstrip().startswith("<section")
    assert 'hx-trigger="every 5s"' in part.text
    seen = re.search(r'hx-get="([^"]+)"', part.text)[1].replace("&amp;", "&")
    assert "#status" not in as_alice.get(seen, **HTMX).text  # nothing new
    worker = leases.claim_job(Submission, submission.pk)
    leases.write_heartbeat(worker, 0.25, "reading what was submitted")
    part = as_alice.get(seen, **HTMX).text
    assert 'hx-swap-oob="innerHTML:#status">' in part
    assert 'value="0.250"' in part
    version = make_set(task, "open")
    leases.finish_job(worker, outcome="ok")
    waiting = EvaluationRun.objects.create(submission=submission, version=version)
    assert as_alice.get(url).context["progress"].position == 1
    run = leases.claim_job(EvaluationRun, waiting.pk)
    leases.write_heartbeat(run, 0.5, "3 of 6 answers")
    page = as_alice.get(url).text
    assert "Running evaluation 1 of 1." in page
    assert "3 of 6 answers" in page
    leases.finish_job(run, outcome="ok")
    part = as_alice.get(seen, **HTMX)
    assert "hx-trigger" not in part.text
    assert part.context["progress"].phase == "scored"
    assert 'id="publish"' in part.text


def test_a_difference_of_shares_is_in_points_as_on_boards():
    values = {"value": 0.014, "low": 0.0, "high": 0.096, "n": 3}
    shown = {
        name: render_to_string("components/score.html", {"score": {**values, "metric": name}})
        for name in ("group_gap", "worst_kind_drop", "accuracy")
    }
    assert ["<strong>1.4%" in one for one in shown.values()] == [False, False, True]
    assert all("<strong>1.4" in one for one in shown.values())


def test_a_check_that_waits_says_behind_what(as_alice, task, alice):
    url = url_of(submission_of(task, alice, requested_by=alice))
    alone = as_alice.get(url).context["progress"].sentence
    other = submission_of(task, alice, state=State.DONE, outcome="ok")
    run = EvaluationRun.objects.create(submission=other, version=make_set(task, "open"))
    assert as_alice.get(url).context["progress"].sentence == alone
    run = leases.claim_job(EvaluationRun, run.pk)
    busy = as_alice.get(url).context["progress"]
    assert busy.sentence != alone
    assert "1" in busy.sentence
    assert busy.phase == "received"
    leases.finish_job(run, outcome="ok")
    assert as_alice.get(url).context["progress"].sentence == alone


def test_publishing_and_taking_back(as_alice, client, model):
    as_alice.post(url_of(model, "publish/"))
    model.refresh_from_db()
    assert model.is_published
    page = as_alice.get(url_of(model)).text
    assert 'id="unpublish"' in page
    as_alice.post(url_of(model, "unpublish/"))
    model.refresh_from_db()
    assert not model.is_published


def test_a_withdrawn_model_is_a_tombstone_for_everybody(as_alice, client, model):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    assert 'id="withdraw"' in as_alice.get(url_of(model, "withdraw/")).text
    page = as_alice.post(url_of(model, "withdraw/"), follow=True)
    assert page.context["progress"].phase == "withdrawn"
    client.logout()
    page = client.get(url_of(model))
    assert page.context["progress"].phase == "withdrawn"
    assert "62.5%" not in page.text
    assert "MiniLM" not in page.text
    assert str(model.pk) not in client.get("/t/nli/models/").text


def test_the_card_is_edited_and_its_markdown_is_clean(as_alice, model):
    url = url_of(model, "card/")
    card = {"description": "Made of *seeds* <script>x</script>", "parameters": "22000000",
            "paper_url": "javascript:alert(1)"}  # fmt: skip
    reply = as_alice.post(url, card)
    assert reply.status_code == 422
    assert "Made of *seeds*" in reply.text
    as_alice.post(url, {**card, "paper_url": "https://paper.example"})
    page = as_alice.get(url_of(model)).text
    assert "<em>seeds</em>" in page
    assert "<script>x" not in page
    assert "22,000,000" in page
    assert 'value="22000000"' in as_alice.get(url).text


def test_a_day_in_the_past_is_told(as_alice, model):
    for day in ("2020-01-01", "soon"):
        data = {"anonymous_until": day}
        page = as_alice.post(url_of(model, "anonymous/"), data, follow=True)
        assert [one.level_tag for one in page.context["messages"]] == ["error"]
    assert Submission.objects.get().anonymous_until is None


def test_an_embargo_is_kept_on_the_page_and_told_to_nobody_else(as_alice, client, model):
    day = timezone.now().date() + timedelta(days=7)
    for wrong in ("2020-01-01", "soon"):
        as_alice.post(url_of(model, "embargo/"), {"publish_on": wrong})
        assert Submission.objects.get().publish_on is None
    as_alice.post(url_of(model, "embargo/"), {"publish_on": day.isoformat()})
    assert f'value="{day}"' in as_alice.get(url_of(model)).text
    assert as_alice.get(f"/api/v1/models/{model.pk}/").json()["publish_on"] == day.isoformat()
    Submission.objects.update(is_published=True)
    client.logout()
    assert client.get(f"/api/v1/models/{model.pk}/").json()["publish_on"] is None
    assert client.post(url_of(model, "embargo/"), {"publish_on": ""}).status_code in (302, 404)
    assert Submission.objects.get().publish_on == day


def test_my_models_lists_mine_only(as_alice, bob, task, model):
    submission_of(task, bob, state=State.FAILED)
    page = as_alice.get("/me/models/")
    assert f"/t/{task.code}/submit/" in page.text
    task.is_visible = False
    task.save()
    # Whoever may no longer see the task isn't sent there.
    assert f"/t/{task.code}/submit/" not in as_alice.get("/me/models/").text
    task.is_visible = True
    task.save()
    ((listed, progress),) = page.context["rows"]
    assert (listed, progress.phase) == (model, "scored")
    assert page.text.count("/m/") == 1
    assert "/me/models/" in as_alice.get("/me/").text


def test_the_task_page_has_the_door(as_alice, task):
    page = as_alice.get("/t/nli/").text
    assert "/t/nli/submit/" in page
    assert "/t/nli/models/" in page


def test_hidden_sets_are_not_named_while_they_run(as_alice, model):
    EvaluationRun.objects.update(state=State.QUEUED, outcome="")
    hidden = EvaluationSet.objects.get(name="sealed")
    run = EvaluationRun.objects.get(version__evaluation_set=hidden)
    leases.claim_job(EvaluationRun, run.pk)
    page = as_alice.get(url_of(model)).text
    assert "Running evaluation 1 of 2." in page
    assert "sealed" not in page


# How many queries


def count(client, url):
    client.get(url)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url).status_code == 200
    return len(queries)


def test_query_counts(as_alice, alice, task, model):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    waiting = submission_of(task, alice, state=State.DONE, outcome="ok")
    versions = [one.versions.get() for one in task.evaluation_sets.order_by("name")]
    EvaluationRun.objects.create(submission=waiting, version=versions[0])
    shown = model.runs.get(version=versions[0])
    answered(shown, *["neutral"] * 6)
    release_of(shown.version)
    pages = {
        "model, wrong": url_of(model, f"runs/{shown.pk}/wrong/"),
        "submit a model": "/t/nli/submit/?kind=hub",
        "model": url_of(model),
        "model, waiting": url_of(waiting),
        "model, log": url_of(model, f"runs/{model.runs.get(version=versions[0]).pk}/"),
        "models": "/t/nli/models/",
        "my models": "/me/models/",
    }
    few = {name: count(as_alice, url) for name, url in pages.items()}
    for number in range(6):
        version = make_set(task, f"more-{number}")
        scored(model, version)
        scored(model, version, "robustness")
        EvaluationRun.objects.create(submission=waiting, version=version)
        other = submission_of(task, UserFactory(), state=State.DONE, is_published=True)
        scored(other, version)
        mine = submission_of(task, alice, state=State.DONE)
        scored(mine, version)
    assert {name: count(as_alice, url) for name, url in pages.items()} == few
    for name, found in few.items():
        check(name, found)


def test_a_score_of_few_examples_is_shown_without_an_interval():
    score = {"value": 0.5, "low": None, "high": None}
    assert "50.0" in render_to_string("components/kind_score.html", {"score": score})


def build_slice(name, value, n=20):
    return Score(metric="accuracy", slice=name, value=value, low=value - 0.1, high=value + 0.1, n=n)


def build_results(*slices, size=40):
    version = SimpleNamespace(size=size)
    return SimpleNamespace(title=f"set of {size}", version=version, slices=list(slices))


def test_strong_and_weak_points_are_clear_ones_of_the_largest_set():
    small = build_results(build_slice("a", 0.9), build_slice("b", 0.2), size=40)
    large = build_results(
        build_slice("a", 0.3), build_slice("b", 0.8), build_slice("few", 0.0, n=9), size=80
    )
    found = find_extreme_slices([small, large])
    assert found.title == "set of 80"
    assert (found.strongest.slice, found.weakest.slice) == ("b", "a")


@pytest.mark.parametrize("slices", [[], [("a", 0.9)], [("a", 0.5), ("b", 0.6)]])
def test_without_a_clear_difference_no_points_are_named(slices):
    results = build_results(*(build_slice(name, value) for name, value in slices))
    assert find_extreme_slices([results]) is None
