"""The dashboard: what a round amounts to, for the members of its task."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone
from django.utils.html import escape

from annotation.models import Example
from tasks.models import TaskMember
from tests.support.factories import ContextFactory, RoundFactory, UserFactory
from tests.support.judging import write
from tests.support.owner_pages import busy  # noqa: F401
from tests.web.conftest import HTMX
from validation.decisions.counted import TryParts
from validation.models import Consensus, Validation
from validation.statistics.definitions import DEFINITIONS

pytestmark = pytest.mark.usefixtures("few_are_enough")

URL = "/own/nli/"


def tiles(html):
    """Code, or title, to words of each tile."""
    parts = re.findall(
        r"<dt(?: data-tile=\"(.*?)\")?(?: title=\".*?\")?>(.*?)</dt><dd>(.*?)</dd>", html, re.DOTALL
    )
    return {
        code or title: " ".join(re.sub("<[^>]*>", " ", words).split())
        for code, title, words in parts
    }


def numbers(words):
    return re.findall(r"\d+(?:\.\d+)?", words)


def tries(html):
    """How many tries the funnel starts from."""
    return re.findall(
        r'<td class="number">\s*<strong>(\d+)<', html.split('<table class="bars steps-table">')[1]
    )[0]


def test_each_tile_says_what_it_should(as_alice, busy):
    found = tiles(as_alice.get(URL).text)
    assert "Tries" not in found  # the funnel has it
    assert found[DEFINITIONS["mer"].title].startswith("75.0% (")
    value, _level, low, high, tries, *_ = numbers(found["Catch rate"])
    assert (value, tries) == ("25.0", "4")
    assert float(low) < 25 < float(high)
    assert found["agreement"] == "1.00 (all 6 votes)"
    assert (found["write-time"], found["judge-time"]) == ("60 s", "20 s")
    assert found["people"] == "4"
    assert numbers(found["waiting"])[0] == "2"
    assert "Cost" not in found


def test_examples_without_a_consensus_need_somebody(as_alice, busy):
    assert as_alice.get(URL).context["undecided"] == 0
    judged = Consensus.objects.filter(state="decided").earliest("pk")
    Consensus.objects.filter(pk=judged.pk).update(state="no_consensus")
    # A viewer may not decide, so nothing waits for her.
    assert as_alice.get(URL).context["undecided"] == 0
    TaskMember.objects.update(role="reviewer")
    page = as_alice.get(URL)
    assert page.context["undecided"] == 1
    assert "/own/nli/review/?kind=no-consensus" in page.text


def days_region(html):
    """The name of the table behind the chart of days."""
    return re.search(r'role="region" aria-label="(\d+ tr[^"]+)"', html)[1]


def rows(html, label):
    """The texts of each row of the table with this name, without its head."""
    part = html.split(f'aria-label="{label}"')[1].split("<tbody>")[1].split("</table>")[0]
    cells = [re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL) for row in part.split("</tr>")[:-1]]
    return [[" ".join(re.sub("<[^>]*>", " ", cell).split()) for cell in row] for row in cells]


def test_days_and_labels_are_tables_too(as_alice, busy):
    html = as_alice.get(URL).text
    assert html.count('<svg class="figure ') == 2
    now = timezone.now()
    words = [f"{now - timedelta(n):%-d %b}" for n in range(4)]
    # Tries, and what became of each: the model was right, waiting, catches, not confirmed.
    found = ["10010", "10001", "10100", "11000"]
    days = [[day, *numbers] for day, numbers in zip(words, found, strict=True)]
    assert rows(html, days_region(html)) == days[::-1]
    assert rows(html, "Labels") == [
        ["definitely true", "2 50%", "0 0%"],
        ["neither definitely true nor definitely false", "2 50%", "1 100%"],
        ["definitely false", "0 0%", "0 0%"],
    ]


def test_days_without_examples_are_drawn_too(as_alice, busy):
    now = timezone.now()
    busy.examples.filter(digest__in="12").update(retracted_at=now)
    html = as_alice.get(URL).text
    found = rows(html, days_region(html))
    assert [int(tries) for _, tries, *_ in found] == [1, 0, 0, 1]


def test_the_funnel_counts_what_fooled(as_alice, busy):
    step = r'scope="row">([\w ]+)</th>.*?<strong>(\d+)</strong>'
    html = as_alice.get(URL).text
    found = re.findall(step, funnel(html), re.DOTALL)
    assert [number for _, number in found] == ["4", "3", "2", "1"]
    Example.objects.update(outcome="no_model")
    cache.clear()
    found = re.findall(step, funnel(as_alice.get(URL).text), re.DOTALL)
    assert [number for _, number in found] == ["4", "2", "1"]


def funnel(html):
    return html.split('<table class="bars steps-table">')[1].split("</table>")[0]


def test_every_part_of_the_page_counts_the_same_catches(as_alice, busy):
    page = as_alice.get(URL)
    html, now = page.text, page.context["now"]
    steps = [int(n) for n in re.findall(r"<strong>(\d+)</strong>", funnel(html))]
    parts = now.parts
    assert steps == [parts.tries, parts.wrong, parts.decided, parts.catches] == [4, 3, 2, 1]
    numbers = page.context["numbers"]
    assert numbers["verified_fooled"] == parts.catches
    assert numbers["collected"] == parts.tries
    assert numbers["fooled"] == parts.wrong
    of_days = [day[-1] for day in now.days]
    assert TryParts(*map(sum, zip(*of_days, strict=True))) == parts
    assert sum(catches for *_names, catches in now.labels) == parts.catches
    assert sum(tries for _label, tries, *_rest in now.labels) == parts.tries


def test_steps_never_grow(as_alice, busy):
    """An owner may decide without a vote, and people may call an error what no rule has found."""
    Consensus.objects.update(is_validated_error=True, is_verified=True, votes=0)
    Example.objects.update(outcome="undecided")
    cache.clear()
    parts = as_alice.get(URL).context["now"].parts
    assert parts.tries >= parts.wrong >= parts.decided >= parts.catches == 2
    assert parts.tries == 4


def test_charts_are_files_for_those_who_see_the_page(as_alice, client, busy):
    for name in ("days", "agreement"):
        address = f"{URL}chart/{name}.svg?round=1"
        assert address in as_alice.get(URL).text
        assert as_alice.get(address).text.startswith("<svg")
        assert as_alice.get(f"{URL}chart/{name}.png").content.startswith(b"\x89PNG")
    assert as_alice.get(f"{URL}chart/labels.svg").status_code == 404
    client.force_login(UserFactory())
    assert client.get(f"{URL}chart/days.svg").status_code == 404


def test_agreement_is_of_votes_on_examples_with_a_consensus(as_alice, busy):
    vote = Validation.objects.filter(example__digest="0").first()
    Validation.objects.filter(pk=vote.pk).update(label="entailment")
    title = "83% of votes match the result"
    ((_, share, mean, votes),) = rows(as_alice.get(URL).text, title)
    assert share.startswith("83.3% (")  # five of six votes
    assert (mean, votes) == ("83.3%", "6")
    Validation.objects.filter(pk=vote.pk).update(
        created_at=timezone.now() - timedelta(days=2), by_program=False
    )
    cache.clear()
    found = rows(as_alice.get(URL).text, title)
    assert [share.split(".")[0] for _, share, *_ in found] == ["0", "–", "100"]


def slices(html):
    """(slice, tries, valid) of each row, from the top; then those that nobody has tried."""
    found = rows(html, "Slices") if 'aria-label="Slices"' in html else []
    return [
        (name.removesuffix(" too few examples"), int(tries), int(valid))
        for name, tries, valid in found
    ]


def untried(page):
    """The slices that nobody has tried, as the page names them."""
    pairs = page.context["untried"]
    names = [f"{title}: {value}" for title, value in pairs]
    assert ('id="untried"' in page.text) == bool(names)
    assert all(f"<bdi>{escape(value)}</bdi>" in page.text for _title, value in pairs)
    return names


def test_thin_slices_come_first(as_alice, busy):
    task = busy.task
    task.config_text = task.config_text.replace("slices: [tag, challenge]", "slices: [tag]")
    task.save()
    assert not as_alice.get(URL).context["slices"]
    first, second, third = busy.contexts.order_by("pk")
    for context, tag in ((first, "ferries"), (second, "negation"), (third, "ferries")):
        context.tag = tag
        context.save()
    busy.examples.filter(digest="2").update(context=second)
    task.config_text = task.config_text.replace("[tag]", "[tag, label, premise, language]")
    task.save()
    cache.clear()
    page = as_alice.get(URL)
    found = slices(page.text)
    assert found[:2] == [("Tag: negation", 1, 0), ("Tag: ferries", 3, 1)]
    assert found[2:4] == [
        ("Label: definitely true", 2, 0),
        (f"Label: {task.config.display('label', 'neutral')}", 2, 1),
    ]
    assert sorted(found[4:]) == sorted(
        [
            (f"Passage: {second.fields['premise']}", 1, 0),
            (f"Passage: {first.fields['premise']}", 3, 1),
        ]
    )
    assert f"Passage: {third.fields['premise']}" in untried(page)


def test_challenges_are_slices_also_those_that_nobody_took_up(as_alice, busy):
    valid = busy.examples.get(consensus__is_verified=True)
    busy.examples.filter(digest="2").update(challenge="negation")
    busy.examples.filter(pk=valid.pk).update(challenge="counting")
    page = as_alice.get(URL)
    # Named as authors read them, not by the keys of the configuration.
    texts = busy.task.config.challenges
    assert untried(page) == [f"Challenge: {texts['several_steps']}"]
    assert slices(page.text) == [
        (f"Challenge: {texts['negation']}", 1, 0),
        (f"Challenge: {texts['counting']}", 1, 1),
    ]


def test_in_a_sensitive_task_slices_show_no_text(as_alice, alice, hate):
    TaskMember.objects.create(task=hate.task, user=alice, role="viewer")
    hate.contexts.update(tag="neighbours")
    wanted = "slices: [tag, prompt, text, label]"
    hate.task.config_text = hate.task.config_text.replace("slices: [tag, challenge]", wanted)
    hate.task.save()
    write(hate, UserFactory(), text="They moved in.", label="not-hate")
    page = as_alice.get("/own/hate-speech/")
    names = [name for name, *_ in slices(page.text)]
    assert [*names, *untried(page)] == ["Tag: neighbours", "Label: not hateful"]


def test_pay_is_shown_where_a_round_pays(as_alice, busy):
    type(busy).objects.update(pay_example=20, pay_validation=5, pay_bonus=100, max_spent=5000)
    page = as_alice.get(URL)
    assert tiles(page.text)["Cost"] == "2.10 EUR of 50.00 EUR"  # 4 examples, 6 votes, 1 catch
    money = page.context["money"]
    assert (money["a_fool"], money["writing"], money["judging"]) == (2.10, 12, 9)


def test_the_cost_of_a_failure_is_drawn_by_round(as_alice, busy):
    pay = {"pay_example": 20, "pay_validation": 5, "pay_bonus": 100}
    type(busy).objects.update(**pay)
    title = "Cost per catch by round</caption>"
    assert title not in as_alice.get(URL).text
    RoundFactory(task=busy.task, number=2, state="closed", **pay)
    RoundFactory(task=busy.task, number=3, state="closed")
    part = as_alice.get(URL).text.split(title)[1].split("</table>")[0]
    found = re.findall(r'class="number">(.*?)</td>', part, re.DOTALL)
    # Round 2 pays and has no catch yet, so it has no bar.
    assert [re.sub("<.*?>", "", cost).strip() for cost in found] == ["2.10 EUR"]


def test_a_round_without_examples_has_a_next_step_in_the_place_of_tiles(as_alice, busy):
    Example.objects.update(retracted_at=timezone.now())
    cache.clear()
    html = as_alice.get(URL).text
    assert not tiles(html)
    assert 'href="/t/nli/write/"' in html.split('id="tiles"')[1]
    busy.state = "closed"
    busy.save()
    html = as_alice.get(URL).text
    assert not tiles(html)
    assert 'href="/own/nli/rounds/"' in html.split('id="tiles"')[1]


def test_the_tiles_come_alone_and_take_no_focus(as_alice, busy):
    response = as_alice.get("/own/nli/tiles/?round=1", **HTMX)
    assert tries(response.text) == "4"
    assert "<html" not in response.text
    assert "autofocus" not in response.text
    assert "<html" in as_alice.get("/own/nli/tiles/").text  # a plain link works too


def test_a_refresh_brings_the_main_numbers_to_their_own_place(as_alice, busy):
    page, part = as_alice.get(URL).text, as_alice.get("/own/nli/tiles/?round=1", **HTMX).text
    assert page.count('id="headline"') == 1
    assert "hx-swap-oob" not in page
    headline = part.split('<div id="headline" hx-swap-oob="true">')[1].split("</dl>")[0]
    assert "25.0%" in headline
    assert headline in page.split('id="headline"')[1]


def test_money_is_in_the_currency_of_the_site(as_alice, busy, settings):
    settings.CURRENCY = "JPY"
    type(busy).objects.update(pay_example=20, pay_validation=5, pay_bonus=100, max_spent=5000)
    assert tiles(as_alice.get(URL).text)["Cost"] == "210 JPY of 5,000 JPY"


def test_a_round_is_chosen(as_alice, busy):
    closed = RoundFactory(task=busy.task, number=2, state="closed")
    ContextFactory(round=closed)
    write(closed, UserFactory())
    assert "round 1</h1>" in as_alice.get(URL).text  # the live one
    assert "round 2</h1>" in as_alice.get(f"{URL}?round=2").text
    assert tries(as_alice.get(f"{URL}?round=2").text) == "1"
    assert "round 1</h1>" in as_alice.get(f"{URL}?round=nine").text


def test_a_task_without_rounds_has_a_page(as_alice, nli, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    nli.contexts.all().delete()
    nli.delete()
    assert as_alice.get(URL).status_code == 200


def test_numbers_of_free_text_have_no_labels(client, qa, alice):
    TaskMember.objects.create(task=qa.task, user=alice, role="owner")
    client.force_login(alice)
    assert not client.get("/own/qa/").context["now"].labels


def test_who_is_no_member_learns_nothing(client, busy):
    for user in (UserFactory(), None):
        if user:
            client.force_login(user)
        for url in (URL, "/own/nli/tiles/"):
            assert client.get(url).status_code == (404 if user else 302)
        client.logout()


def test_a_large_round_has_a_page_before_it_is_counted(as_alice, busy, monkeypatch):
    monkeypatch.setattr("dynabench.manage.dashboard.read_cached_numbers", lambda *_: None)
    page = as_alice.get(URL)
    assert page.status_code == 200
    assert not tiles(page.text)


def test_tiles_and_tables_are_of_one_count(as_alice, bob, busy):
    """What was kept for a shorter time would be newer than the rest of the page."""
    as_alice.get(URL)
    write(busy, bob, 9, hypothesis="Another statement.", label="neutral")
    cache.delete(f"activity:{busy.pk}")  # kept for half a minute, for programs
    html = as_alice.get(URL).text
    by_label = [int(given.split()[0]) for _, given, _ in rows(html, "Labels")]
    assert sum(by_label) == int(tries(html)) == 4
    cache.clear()
    assert tries(as_alice.get(URL).text) == "5"
