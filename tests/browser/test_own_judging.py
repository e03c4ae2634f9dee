"""Owners look at judging: review, policy, dashboard, people; axe, focus, refresh, no script."""

import re

import pytest
from playwright.sync_api import expect

from annotation.models import Example
from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from tasks.models import TaskMember
from tests.browser.conftest import audit, make_round, visit
from tests.support.factories import UserFactory
from tests.support.judging import answered, write
from tests.support.policies import rederive
from validation.consensus.consensus import Policy
from validation.models import Consensus, OwnerDecision, Validation


@pytest.fixture(params=["nli", "hate-speech"])
def code(request):
    return request.param


@pytest.fixture
def judged(alice, code):
    """Three examples, each decided by one vote of three; Alice owns the task."""
    round = make_round(code)
    TaskMember.objects.create(task=round.task, user=alice, role="owner")
    author, *people = [UserFactory() for _ in range(4)]
    labels = {"nli": ("neutral", "entailment"), "hate-speech": ("hate", "not-hate")}[code]
    text = {"nli": "hypothesis", "hate-speech": "text"}[code]
    for number in range(3):
        said = {text: f"Statement {number} that Jonas wrote.", "label": labels[0]}
        example = write(round, author, number, **said)
        answered(example, labels[1])
        for person, label in zip(people, (labels[0], labels[0], labels[1]), strict=True):
            Validation.objects.create(
                example=example,
                validator=get_annotator(person),
                label=label,
                seconds=9,
                comment="I read it twice.",
            )
    rederive(round=round, policy=Policy("plurality", of=3))
    return round


def test_every_page_of_an_example_is_readable(page, code, judged):
    """Sensitive words are shielded."""
    one = Example.objects.earliest("pk")
    for path in (
        "review/",
        f"review/{one.uuid}/",
        "review/examples/?outcome=fooled",
        f"examples/{one.uuid}/",
        f"review/{one.uuid}/withdraw/",
    ):
        visit(page, f"/own/{code}/{path}")
        audit(page)


@pytest.mark.parametrize("code", ["nli"], indirect=True)
def test_every_other_page_is_readable(page, judged):
    for path in (
        "",
        "annotators/",
        "rounds/1/policy/",
        "rounds/1/policy/?rule=n-equal&needed=3",
        "rounds/1/arms/",
    ):
        visit(page, f"/own/nli/{path}")
        audit(page)
    page.goto("/own/nli/rounds/1/policy/?rule=strict")
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)


@pytest.mark.parametrize("code", ["nli"], indirect=True)
def test_one_decision_follows_another(page, judged):
    first, second, _ = Example.objects.order_by("pk")
    visit(page, "/own/nli/review/?kind=split")
    page.locator(f"#queue a[href*='{first.uuid}']").click()
    page.locator("#decide").click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    page.get_by_label("definitely false", exact=True).check()
    page.locator("[name=reason]").fill("The ferry never leaves at ten.")
    page.locator("#decide").click()
    heading = page.locator(f'h1[data-example="{second.uuid}"]')
    expect(heading).to_be_focused()
    expect(page.locator("#status")).not_to_be_empty()
    expect(page).to_have_url(re.compile(f"/own/nli/review/{second.uuid}/\\?kind=split$"))
    audit(page)
    assert OwnerDecision.objects.get().reason == "The ferry never leaves at ten."
    visit(page, f"/own/nli/review/{first.uuid}/")
    page.locator("form[action*='/undecide/'] button").click()
    expect(page.locator("[data-withdrawn]").first).to_be_visible()
    expect(page.locator("h1")).to_be_focused()
    page.locator("#gold > summary").click()
    page.locator("#gold button").click()
    expect(page.get_by_role("heading", name="Gold item")).to_be_visible()
    audit(page)


@pytest.mark.parametrize("code", ["nli"], indirect=True)
def test_many_are_reviewed_by_keys(page, alice, judged):
    get_annotator(alice)
    Annotator.objects.update(keyboard_mode=True)
    decided = OwnerDecision.objects.filter(withdrawn_at=None).order_by("example")
    visit(page, "/own/nli/review/examples/")
    for key in ("j", "x", "j", "Shift+X"):
        page.keyboard.press(key)
    expect(page.locator("[name=example]:checked")).to_have_count(2)
    page.keyboard.press("s")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("a reason: mend it")
    page.keyboard.press("Enter")  # which action would that be?
    assert not decided.exists()
    page.get_by_role("button", name="Send back").click()
    expect(page.locator("[data-by=owner][data-state=sent-back]")).to_have_count(2)
    page.keyboard.press("u")
    expect(page.locator("[data-by=owner][data-state=sent-back]")).to_have_count(0)
    assert not decided.exists()
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator("[data-by=owner][data-state=valid]")).to_have_count(1)
    assert [one.example for one in decided] == [Example.objects.earliest("pk")]


@pytest.mark.parametrize("code", ["nli"], indirect=True)
def test_review_and_policy_work_without_scripts(open_page, alice, judged):
    first, second, _ = Example.objects.order_by("pk")
    page = open_page(alice, java_script_enabled=False)
    visit(page, f"/own/nli/review/{first.uuid}/?kind=split")
    page.get_by_label("definitely false", exact=True).check()
    page.locator("#decide").click()
    expect(page.locator("h1")).to_have_attribute("data-example", str(second.uuid))
    expect(page.locator(".messages")).to_be_visible()
    visit(page, "/own/nli/rounds/1/policy/")
    page.locator("[name=rule][value=n-equal]").check()
    page.locator("[name=needed]").fill("3")
    page.locator("#show-changes").click()
    expect(page.locator("#preview + p > strong")).to_be_visible()
    page.locator("#apply-policy").click()
    expect(page.locator(".messages")).to_contain_text("2")


@pytest.mark.parametrize("code", ["nli"], indirect=True)
def test_a_preview_takes_the_focus_and_stores_nothing(page, judged):
    visit(page, "/own/nli/rounds/1/policy/")
    page.locator("[name=rule][value=n-equal]").check()
    page.locator("[name=needed]").fill("3")
    page.locator("#show-changes").click()
    expect(page.locator("#preview")).to_be_focused()
    expect(page.locator("#status")).to_contain_text("3")
    audit(page)
    assert judged.round_policy.policy["rule"] == "plurality"


@pytest.mark.parametrize("code", ["nli"], indirect=True)
def test_the_dashboard_refreshes_until_it_is_paused(page, judged):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.install()
    visit(page, "/own/nli/")
    pause = page.locator("#pause")
    pause.focus()
    with page.expect_response("**/tiles/**"):
        page.clock.fast_forward(31_000)
    expect(page.locator("#tiles .updated")).to_be_visible()
    expect(pause).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#pause")).to_be_focused()
    before = len([url for url in asked if "/tiles/" in url])
    page.clock.fast_forward(120_000)
    with page.expect_response("**/tiles/**"):
        page.locator("#tiles .updated a").click()
    assert len([url for url in asked if "/tiles/" in url]) == before + 1
    page.locator("#pause").press("Enter")
    page.get_by_role("region", name="Labels").focus()
    page.clock.fast_forward(31_000)  # what has the focus is not swapped away
    expect(page.get_by_role("region", name="Labels")).to_be_focused()
    assert len([url for url in asked if "/tiles/" in url]) == before + 1


@pytest.mark.parametrize("code", ["nli"], indirect=True)
def test_the_second_opinion(page, judged):
    path = "/own/nli/rounds/1/second-opinion/"
    visit(page, path)
    expect(page.locator("#no-disagreements")).to_be_visible()
    expect(page.locator(".squares > li").first).to_be_visible()
    audit(page)
    example = Example.objects.earliest("pk")
    Consensus.objects.filter(example=example).update(label="entailment")
    visit(page, path)
    row = page.locator("#otherwise + [role=region] tr").last
    expect(row).to_contain_text("entailment")
    audit(page)
    row.get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_attribute("data-example", str(example.uuid))


@pytest.mark.parametrize("code", ["nli"], indirect=True)
def test_no_second_opinion_without_labels(open_page, alice, judged):
    Consensus.objects.all().delete()
    Validation.objects.all().delete()
    page = open_page(alice, java_script_enabled=False)
    visit(page, "/own/nli/rounds/1/second-opinion/")
    expect(page.locator("#no-model")).to_be_visible()
