"""The leaderboard in a browser: sliders by keyboard, without JavaScript, all pages under axe."""

import re
from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from leaderboard.snapshots.services import take_snapshot
from tasks.models import TaskMember
from tests.browser.conftest import audit, make_round, visit
from tests.support.boards import fill_board, measured
from tests.support.evaluations import accepted_model

URL = "/t/nli/leaderboard/"
BY_RATES = f"{URL}?mode=robust"
"""Of models that differ little in speed, the cheapest wins by exchange rates alone."""


@pytest.fixture
def task(alice, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    round = make_round("nli")
    TaskMember.objects.create(task=round.task, user=alice, role="owner")
    fill_board(round.task)
    partly = accepted_model(round.task, name="Partly", is_published=True)
    measured(partly, round.task.evaluation_sets.get(name="round-1").versions.get(), 0.9)
    return round.task


def models(page: Page) -> Locator:
    return page.locator("#rows tbody th > bdi > a")


def sets_of(page: Page, model: str) -> Locator:
    """The part below a model's row that shows its scores set by set."""
    row = page.get_by_role("row").filter(has_text=re.compile(f"{model}$|{model}\\b"))
    return row.locator("details[id^=sets-]")


BY_SCORE = ["Model 2", "Model 1", "Model 0", "Partly"]
BY_COST = ["Model 0", "Model 1", "Model 2", "Partly"]


def test_a_slider_by_keyboard(page, task):
    """Focus stays, rows move, the URL has the weights, the status names the change."""
    visit(page, BY_RATES)
    expect(models(page)).to_have_text(BY_SCORE)
    slider = page.get_by_role("slider", name=re.compile("Throughput"))
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("w_throughput=5"))
    expect(slider).to_be_focused()
    expect(page.locator("#id_w_throughput")).to_have_value("5")
    expect(page.get_by_text("Throughput: 5 of 12, 42%")).to_be_visible()
    page.keyboard.press("End")
    expect(page).to_have_url(re.compile("w_throughput=8"))
    expect(page.locator("#status")).to_have_text(re.compile(r"Model 2\b.*\b1\b.*\b3\b"))
    page.get_by_role("slider", name=re.compile("Accuracy")).focus()
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile("w_accuracy=0"))
    expect(page.get_by_role("slider", name=re.compile("Accuracy"))).to_be_focused()
    expect(models(page)).to_have_text(BY_COST)
    address = page.url
    visit(page, URL)
    expect(models(page)).to_have_text(BY_SCORE)
    page.emulate_media(media="print")  # on a sheet, where nothing scrolls
    page.set_viewport_size({"width": 700, "height": 1000})
    for table in page.locator(".table-scroll").all():
        assert table.evaluate("box => box.scrollWidth <= box.clientWidth")
        expect(table).to_have_css("overflow-x", "visible")
    expect(page.locator(".ranking")).to_have_css("display", "block")
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 800})
    visit(page, address)
    expect(models(page)).to_have_text(BY_COST)


def test_without_javascript(open_page, task):
    page = open_page(java_script_enabled=False)
    visit(page, BY_RATES)
    page.get_by_role("slider", name=re.compile("Accuracy")).focus()
    page.keyboard.press("Home")
    page.locator("#id_w_throughput").fill("8")
    page.get_by_role("button", name="Apply").click()
    expect(models(page)).to_have_text(BY_COST)
    assert "w_accuracy=0" in page.url
    moved = re.compile(r"Model 0 .*\b3\b.*\b1\b")
    expect(page.get_by_text(moved).first).to_be_visible()
    other = open_page(java_script_enabled=False)
    visit(other, page.url)
    expect(models(other)).to_have_text(BY_COST)
    page.get_by_role("link", name="Accuracy", exact=True).click()
    expect(page.get_by_role("columnheader", name=re.compile("Accuracy"))).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(models(page).first).to_have_text("Model 2")
    sets_of(page, "Model 0").locator("summary").click()
    sets_of(page, "Model 0").locator("a").click()
    expect(page.get_by_role("region", name="Scores of Model 0 on round-1 v1")).to_be_visible()
    page.get_by_label("Horizontal axis").select_option("memory")
    page.get_by_role("button", name="Draw chart").click()
    expect(page.locator("#chart-two-metrics")).to_contain_text("Memory (GiB)")
    page.locator("#reset-weights").click()
    expect(models(page)).to_have_text(BY_SCORE)


@pytest.mark.parametrize("script", [True, False])
def test_all_weights_zero_ties_and_what_was_not_run(open_page, task, script):
    page = open_page(java_script_enabled=script)
    visit(page, URL)
    expect(page.get_by_role("row", name=re.compile("Partly"))).to_contain_text("not run")
    for name in ("throughput", "memory", "fairness", "robustness", "accuracy"):
        page.locator(f"#id_w_{name}").fill("0")
    if script:
        expect(page.get_by_role("alert").last).not_to_be_empty()
        expect(page.locator("#id_w_accuracy")).to_be_focused()
        expect(models(page)).to_have_count(4)
        audit(page)
        page.locator("#id_w_macro_f1").fill("3")
        expect(page.locator("#problem")).to_be_empty()
    else:
        page.get_by_role("button", name="Apply").click()
        expect(page.locator(".error-summary")).to_be_visible()
    tied = accepted_model(task, name="Tied", is_published=True)
    for one in task.evaluation_sets.all():
        version = one.versions.get()
        accuracy = version.runs.get(submission__name="Model 2", suite="plain").scores.first().value
        measured(tied, version, accuracy)
    visit(page, f"{URL}?w_throughput=0&w_memory=0&w_fairness=0&w_robustness=0")
    expect(page.get_by_role("row", name=re.compile("Tied"))).to_contain_text("1–")


def test_sorting_keeps_the_focus(page, task):
    visit(page, URL)
    header = page.locator("#sort-throughput")
    header.click()
    expect(page).to_have_url(re.compile("sort=throughput"))
    expect(page.locator("#sort-throughput")).to_be_focused()
    expect(models(page).first).to_have_text("Model 0")
    page.locator("#id_w_macro_f1").fill("2.5")
    expect(page).to_have_url(re.compile("w_macro_f1=2.5.*sort=throughput"))
    page.locator("#id_w_memory").fill("3")
    expect(page).to_have_url(re.compile("w_macro_f1=2.5.*w_memory=3.*sort=throughput"))
    page.get_by_label("Horizontal axis").focus()
    page.keyboard.press("M")
    expect(page.locator("#chart-two-metrics")).to_contain_text("Memory (GiB)")
    expect(page.get_by_label("Horizontal axis")).to_be_focused()
    expect(page).to_have_url(re.compile("sort=throughput&x=memory$"))


def test_an_open_row_stays_open_and_the_link_is_copied(page, task):
    visit(page, BY_RATES)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    sets_of(page, "Model 0").locator("summary").click()
    scores = page.get_by_role("region", name="Scores of Model 0 on round-1 v1")
    expect(scores).to_be_visible()
    page.locator("#id_w_throughput").fill("8")
    expect(page).to_have_url(re.compile("w_throughput=8"))
    expect(page.locator("#status")).to_have_text(re.compile("moved from"))
    expect(scores).to_be_visible()
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#status")).to_have_text("Copied.")
    assert "w_throughput=8" in page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("link", name="Compare Model 0 with…").click()
    expect(page.get_by_label("First model")).to_have_value(re.compile("-"))
    audit(page)


def test_all_pages(page, task):
    take_snapshot(task=task, actor=None)
    visit(page, "/leaderboards/")
    audit(page)
    for path in ("", "?open=" + str(task.submissions.last().pk), "forks/", "snapshots/",
                 "snapshots/1/", "embed/"):  # fmt: skip
        visit(page, URL + path)
        audit(page)
    visit(page, URL)
    sets_of(page, "Model 2").locator("summary").click()
    expect(page.get_by_role("region", name="Scores of Model 2 on round-2 v1")).to_be_visible()
    audit(page)
    page.locator("#save-weights").click()
    page.locator("#save-fork").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    page.get_by_label("Name").fill("mine")
    page.locator("#save-fork").click()
    expect(page).to_have_url(re.compile("fork=mine"))
    visit(page, "/t/nli/")
    audit(page)


def test_without_javascript_a_link_leads_to_the_sets(open_page, task):
    page = open_page(java_script_enabled=False)
    visit(page, URL)
    sets_of(page, "Model 2").locator("summary").click()
    link = sets_of(page, "Model 2").locator("a")
    assert link.bounding_box()["height"] >= 24  # htmx may not have replaced it yet
    link.click()
    expect(page.get_by_role("region", name="Scores of Model 2 on round-2 v1")).to_be_visible()


def test_a_table_that_goes_on_has_a_shadow_at_its_edge_until_its_end(open_page, task):
    page = open_page(viewport={"width": 900, "height": 800}, reduced_motion="reduce")
    visit(page, f"{URL}?all=1")
    box = page.locator("#rows .table-scroll").first
    assert box.evaluate("node => node.scrollWidth > node.clientWidth")
    assert is_darker_at_its_end(box)
    box.evaluate("node => node.scrollTo({left: node.scrollWidth, behavior: 'instant'})")
    assert not is_darker_at_its_end(box)


def is_darker_at_its_end(box):
    """Return whether the last pixels of the first row of a table are darker than those before."""
    with Image.open(BytesIO(box.screenshot())) as picture:
        width, grey = picture.width, picture.convert("L")
        # Just below the upper edge, where no letter is.
        return grey.getpixel((width - 2, 2)) < grey.getpixel((width - 40, 2)) - 15


def test_small_screens_show_cards(open_page, task):
    file = accepted_model(task, name="Uploaded", is_published=True)
    for one in task.evaluation_sets.all():
        measured(file, one.versions.get(), 0.6, memory=None, speed=None)
    page = open_page(viewport={"width": 320, "height": 800})
    visit(page, URL)
    ranged = page.get_by_role("row", name=re.compile("Uploaded")).first
    score = ranged.locator("[data-label=Dynascore] strong")
    expect(score).to_have_text(re.compile(r"^\d+\.\d to \d+\.\d$"))
    expect(ranged.locator("svg .range")).to_have_count(1)
    box = score.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 320
    card = page.get_by_role("row", name=re.compile("Model 2")).first
    expect(card.locator("[data-label=Accuracy]")).to_be_visible()
    expect(card.locator("[data-label=Robustness]")).to_be_hidden()
    page.get_by_role("link", name="All metrics").click()
    expect(card.locator("[data-label=Robustness]")).to_be_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_table_with_a_long_name_is_no_wider_than_its_place(page, task, width):
    task.submissions.filter(name="Model 2").update(name="a-model-with-a-name-" + "x" * 40)
    page.set_viewport_size({"width": width, "height": 800})
    visit(page, URL)
    box = page.locator(".table-scroll").first
    expect(box.locator("table.board")).to_have_count(1)
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")


OVERFLOWS = """() => [...document.querySelectorAll("html, .table-scroll, .card, pre")]
    .filter(one => one.clientWidth && one.scrollWidth > one.clientWidth + 1).length"""


def test_nothing_overflows_in_arabic_that_does_not_in_english(open_page, alice, task):
    found = {}
    for language in ("en", "ar"):
        page = open_page(alice, locale=language)
        for path in (URL, "/t/nli/rounds/", "/own/nli/", "/own/nli/annotators/"):
            for width in (1280, 320):
                page.set_viewport_size({"width": width, "height": 800})
                visit(page, path)
                found[language, path, width] = page.evaluate(OVERFLOWS)
        assert page.evaluate("document.documentElement.lang") == language
    for (language, *where), number in found.items():
        assert number <= found["en", *where], (language, where)
