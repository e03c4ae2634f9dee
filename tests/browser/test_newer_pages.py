"""Pages of models and of their judges, read by axe in both themes; and used without a script."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from evaluation.judges.llm_judges.agreement import Agreement
from evaluation.models import CustomMetric, LlmJudge
from tasks.models import TaskMember
from tests.browser.conftest import audit, make_round, visit
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import TaskFactory, scripted_target
from tests.support.judged_answers import chat_target, judged_answers
from tests.support.own_workers import fill_own_workers
from tests.support.paraphrases import paraphrased
from tests.support.submissions import url_of
from tests.support.training_dates import model_of, round_set

pytestmark = pytest.mark.nightly("looks")

TODAY = datetime.now(UTC).date()
WEEK = timedelta(days=7)
JUDGES = "/own/free/llm-judges/?new=1"
MEASURED = Agreement(60, 20, 30, 5, 5, 20, 0.66, 0.41, 0.85)


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


def chat_form(user):
    TaskFactory(code="nli")
    return "/t/nli/submit/?kind=chat"


def follow(user):
    TaskFactory(code="nli")
    return "/t/nli/"


def embargo(user):
    return url_of(accepted_model(TaskFactory(code="nli"), user, publish_on=TODAY + WEEK))


def training_dates(user):
    task = TaskFactory(code="nli")
    before = round_set(task, 1, TODAY - 9 * WEEK, TODAY - 8 * WEEK, 20)
    after = round_set(task, 2, TODAY - WEEK, TODAY, 20)
    model_of(task, user, "dated", TODAY - 4 * WEEK, (before, 18, False), (after, 9, False))
    return "/t/nli/leaderboard/training-dates/"


def llm_judges(user):
    task = judged_answers(authors=2)
    TaskMember.objects.create(task=task, user=user, role="owner")
    target = chat_target(task, "http://127.0.0.1:1/v1", model="m")
    for name, report in (("new", {}), ("measured", {"calibrate": MEASURED._asdict()})):
        LlmJudge.objects.create(
            task=task, target=target, name=name, prompt="Judge " + "it" * 40, most_calls=9,
            asked_with={}, state="done", report={"calls": 9, "failures": 1, "waiting": 3, **report},
        )  # fmt: skip
    return JUDGES


def paraphrases(user):
    task = TaskFactory(code="nli")
    TaskMember.objects.create(task=task, user=user, role="owner")
    paraphrased(set_version(task))
    return "/own/nli/evaluation-sets/dev/paraphrases/"


def metrics(user):
    metric(user)
    return "/own/nli/metrics/?name="


def metric(user):
    """A second version that waits for a decision, which the person makes."""
    task = TaskFactory(code="nli")
    type(user).objects.filter(pk=user.pk).update(is_superuser=True)
    rows = [{"example": {"text": "So."}, "gold": ["a", "b"], "answer": "a", "value": 0.5}]
    trial = {"examples": 1, "failure": "", "seconds": 1.0, "mean": 0.5, "shown": rows}
    for number, review in ((1, "approved"), (2, "proposed")):
        CustomMetric.objects.create(
            task=task, name="safe", number=number, about="How safe.", digest="a" * 64,
            source=f"def score(gold, answer, example):\n    return 1 / {number}\n",
            review=review, state="done", trial=trial, decided_at=datetime.now(UTC),
        )  # fmt: skip
    return "/t/nli/metrics/safe/v2/"


def own_workers(user):
    task = TaskFactory(code="nli")
    TaskMember.objects.create(task=task, user=user, role="owner")
    fill_own_workers(task, set_version(task, may_leave=True), 1)
    return "/own/nli/own-workers/"


BUTTONS = {
    chat_form: "#submit-model",
    llm_judges: "#add-judge",
    paraphrases: "#ask-paraphrases",
    metrics: "#propose-metric",
    metric: "#decide",
    own_workers: "#let-them",
}


@pytest.mark.parametrize(
    "made",
    [follow, embargo, training_dates, *BUTTONS],
    ids=lambda made: made.__name__,
)
def test_a_page_and_what_it_says_to_an_empty_form(page, alice, made):
    visit(page, made(alice))
    audit(page)
    if button := BUTTONS.get(made):
        page.locator(button).click()
        expect(page.locator(".error-summary")).to_be_focused()
        audit(page)
    if made is follow:
        page.locator("#follow button").click()
        expect(page.locator("#follow")).to_be_visible()
        audit(page)


def test_a_judge_is_made_without_a_script(open_page, alice):
    llm_judges(alice)
    page = open_page(alice, java_script_enabled=False)
    visit(page, JUDGES)
    page.get_by_label("Name", exact=True).fill("careful")
    page.get_by_label("Judge model", exact=True).select_option("chat")
    page.locator("#add-judge").click()
    expect(page.get_by_role("rowheader", name="careful")).to_be_visible()
    assert LlmJudge.objects.filter(name="careful", state="queued").exists()


def test_three_texts_are_answered_one_after_another(page, alice, model_calls):
    round = make_round("nli")
    target = scripted_target(round, label="neutral")
    TaskMember.objects.create(task=round.task, user=alice, role="owner")
    visit(page, f"/own/nli/targets/{target.pk}/health/")
    page.locator("#send-texts").click()
    expect(page.locator("tbody[aria-live] td.number")).to_have_count(3)
    expect(page.locator("#test-title")).to_be_focused()
    assert len(model_calls) == 3
