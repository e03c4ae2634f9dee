"""On a small phone nothing that sticks lies over what is to be read or filled."""

from core.accounts.services import get_annotator
from tests.browser.conftest import assign, make_round, visit
from tests.support.battles import battle_arena, send
from tests.support.factories import UserFactory, scripted_target
from tests.support.judging import write

PHONE = {"width": 320, "height": 640}
COVERED = """() => new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame))
.then(() => {
  const isStuck = one => ["sticky", "fixed"].includes(getComputedStyle(one).position);
  const stuck = [...document.querySelectorAll("body *")].filter(isStuck);
  const focused = document.activeElement.closest(".field") || document.activeElement;
  const meant = [...document.querySelectorAll("main :is(.field, .counter, .hint, legend, .text)")];
  return stuck.flatMap(bar => meant.filter(one => {
    const box = one.getBoundingClientRect(), over = bar.getBoundingClientRect();
    const height = Math.min(box.bottom, over.bottom) - Math.max(box.top, over.top);
    const width = Math.min(box.right, over.right) - Math.max(box.left, over.left);
    const isPassed = bar.matches("header.site") && scrollY > 0 && one !== focused;
    return height > 1 && width > 1 && !isPassed && !bar.contains(one) && !one.contains(bar);
  }).map(one => `${bar.className} over ${one.id || one.textContent.trim().slice(0, 40)}`));
})"""
"""What is covered; of the site's header only over the focused field, once the page has scrolled."""
FIELDS = "main :is(textarea, input:not([type=hidden]), select, button)"


def addresses(alice):
    """Pages on which people write, answer, judge and compare."""
    for code in ("nli", "qa", "sentiment", "hate-speech"):
        round = make_round(code)
        scripted_target(round)
        assign(alice, round)
        yield f"/t/{code}/write/"
    yield "/t/qa/try/"
    write(round, UserFactory(), text="They moved in.", label="not-hate")
    yield "/t/hate-speech/judge/"
    send(battle_arena(), get_annotator(alice))
    yield "/t/duel/battle/"


def test_nothing_that_sticks_covers_what_is_read_or_filled(open_page, alice):
    page = open_page(alice, has_touch=True, is_mobile=True, viewport=PHONE)
    for address in addresses(alice):
        visit(page, address)
        assert not page.evaluate(COVERED), address
        for number, field in enumerate(page.locator(FIELDS).all()[:12]):
            if field.is_visible():
                field.focus()
                if field.evaluate("one => one.matches('textarea')"):
                    page.keyboard.type("So it is.")
                assert not page.evaluate(COVERED), (address, number)
