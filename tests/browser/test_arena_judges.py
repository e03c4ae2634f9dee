"""LLM judges of an arena in the browser: the owners' page and the leaderboard, under axe."""

import pytest
from playwright.sync_api import expect

from leaderboard.arena.judges.services import create_arena_judge, show_arena_judge
from leaderboard.jobs import ask_arena_judge
from leaderboard.models import ArenaJudge
from tasks.models import TaskMember
from tests.browser.conftest import audit, visit
from tests.support.arena_judges import judge_target, prefers_good, voted_arena
from tests.support.chat_server import chat_server

PAGE, BOARD = "/own/duel/arena/judges/", "/t/duel/arena/"


def prefers_some(messages):
    """Right but for each tenth question, where it takes what it reads first."""
    return "first" if "Question 3" in messages[1]["content"] else prefers_good(messages)


@pytest.fixture
def judge(alice, settings):
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.0/8"]
    task = voted_arena(60)
    TaskMember.objects.create(task=task, user=alice, role="owner")
    with chat_server({"chat-1": prefers_some}) as server:
        judge = create_arena_judge(
            task=task, target=judge_target(task, server.url), name="careful-1",
            prompt="Judge it.", most_calls=1000, actor=None,
        )  # fmt: skip
        ask_arena_judge(judge.pk)
    judge.refresh_from_db()
    return judge


@pytest.mark.parametrize("width", [1440, 320])
def test_the_pages_of_a_judge(page, judge, width):
    page.set_viewport_size({"width": width, "height": 800})
    visit(page, PAGE)
    expect(page.locator("[data-first-share]")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    audit(page)
    page.locator("[name=on]").click()
    expect(page.locator("[name=off]")).to_be_visible()
    visit(page, BOARD)
    expect(page.locator("#llm-judges")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    audit(page)


def test_the_page_without_judges_has_the_form(page, judge):
    ArenaJudge.objects.all().delete()
    visit(page, PAGE)
    page.locator("#add-judge").click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)


def test_a_dark_board(open_page, alice, judge):
    show_arena_judge(judge=judge, actor=None, is_shown=True)
    page = open_page(alice, color_scheme="dark")
    visit(page, BOARD)
    audit(page)
