"""The task page and the task list: rounds in all states, their numbers, who sees what."""

# ruff: noqa: F811  (fixtures are named where they are used)

import csv
import re
from datetime import timedelta
from threading import Thread

import pytest
import time_machine
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluation.models import Dataset
from tasks.models import Round, Task, TaskMember
from tests.support.factories import RoundFactory, TaskFactory, scripted_target
from tests.support.judging import write
from tests.support.task_pages import (
    Later,
    large,  # noqa: F401
    one_more,
    rounds,  # noqa: F401
)
from tests.support.task_reports import by, load, mood, report, row  # noqa: F401
from validation.rates.rates import Rate
from validation.statistics.cache import get_all_numbers, get_headline_numbers
from validation.templatetags.numbers import describe_missing

pytestmark = pytest.mark.usefixtures("few_are_enough")


def text_of(response):
    return " ".join(re.sub("<[^>]*>", " ", response.text).split())


def test_numbers_by_round_with_their_intervals(client, rounds):
    page = client.get("/t/nli/data/")
    text = text_of(page)
    numbers = {round.number: found for round, found in page.context["numbered"]}
    caught, people = numbers[1]["vmer"], numbers[1]["human_accuracy"]
    rates = [numbers[number]["vmer"] for number in sorted(numbers)]
    assert [(one.n, one.clusters, one.has_few_authors) for one in rates] == [
        (2, 1, True), (4, 2, True), (2, 1, True),
    ]  # fmt: skip
    assert caught.value == 0.5
    assert people.value == 1
    for rate in (caught, people):
        value, low, high = (f"{100 * share:.1f}" for share in (rate.value, rate.low, rate.high))
        assert f"{value}%" in text
        assert f"{low}–{high}" in text
    assert [name in text for name in ("Confirmed", "Judged", "Counted at")] == [True] * 3
    charts = page.text.split('<svg class="figure lines')[1:]
    assert [chart.split("</svg></figure>")[0].count(" dot") for chart in charts] == [2 * 3, 3]


def test_charts_of_rounds_are_files(client, rounds):
    page = client.get("/t/nli/data/")
    for name, figure in page.context["figures"].items():
        for format, begin in (("svg", b"<svg"), ("png", b"\x89PNG")):
            address = f"/t/nli/chart/{name}.{format}"
            assert address in page.text
            assert client.get(address).content.startswith(begin)
        assert figure.title in client.get(f"/t/nli/chart/{name}.svg").text
    assert len(page.context["figures"]) == 2
    assert client.get("/t/nli/chart/other.svg").status_code == 404


def test_without_data_there_is_an_invitation(client, nli):
    def invitation():
        page = client.get("/t/nli/").text
        assert "#vmer" not in page
        return re.search(r'<p id="nothing-collected">(.*?)</p>', page, re.S)[1]

    assert "<a " in invitation()
    nli.state = "closed"
    nli.save()
    assert "<a " not in invitation()


def test_a_task_without_examples_has_no_headings_for_them(client, nli):
    assert 'id="valid"' in client.get("/t/nli/").text
    config = nli.task.config_text
    start, end = config.index("\nexamples:\n"), config.index("\ngoal:")
    nli.task.config_text = config[:start] + config[end:]
    nli.task.save()
    page = client.get("/t/nli/").text
    assert not [place for place in ('id="valid"', "#valid") if place in page]


def test_one_round_has_no_trend(client, rounds):
    Round.objects.exclude(number=1).update(state="draft")
    page = client.get("/t/nli/data/")
    assert 'class="figure' not in page.text
    assert "50.0%" in page.text


DOORS = {"open": ["write", "judge"], "paused": ["judge"], "closed": ["judge"]}


@pytest.mark.parametrize("state", Round.State.values)
def test_a_round_in_each_state(as_alice, nli, bob, state):
    write(nli, bob)  # which waits for a judge
    nli.state = state
    nli.save()
    page = as_alice.get("/t/nli/").text
    seen = state not in ("draft", "ready")
    head = re.search(r'<header class="task-head.*?</header>', page, re.S)[0]
    assert ("Round 1" in head and f'class="state {state}"' in head) == seen
    assert ('id="no-round"' in page) == (state not in ("open", "paused"))
    data = as_alice.get("/t/nli/data/").text
    assert ('id="round-1"' in data and f'class="state {state}"' in data) == seen
    row = re.search(r'id="doors">(.*?)</div>', page, re.S)[1]
    doors = re.findall(r'href="[^"]*nli/(write|judge)/"', row)
    assert doors == DOORS.get(state, [])


def test_names_of_targets_are_hidden_while_the_round_is_open(client, nli):
    scripted_target(nli, name="secret-target")
    nli.show_target_name = False
    nli.save()
    page = client.get("/t/nli/")
    assert "secret-target" not in page.text
    assert "Model A" in client.get("/t/nli/data/").text
    nli.state = "closed"
    nli.save()
    assert "secret-target" in client.get("/t/nli/data/").text


def test_a_sensitive_task_shows_its_texts_behind_a_shield(client, hate):
    page = client.get("/t/hate-speech/")
    before, inside = page.text.split('class="shield"')
    inside, after = inside.split('id="leaderboard"')
    assert [part.count('class="card case"') for part in (before, inside, after)] == [0, 6, 0]
    assert hate.task.config.content_warning.share in text_of(page)


def test_a_released_round_names_its_dataset(client, rounds):
    Dataset.objects.create(round=rounds[0], version=1, state="failed")

    def datasets():
        return {round.number: found.dataset for round, _counts, found in rows() if found}

    def rows():
        return client.get("/t/nli/data/").context["rounds"]

    assert datasets() == {}
    newest = Dataset.objects.create(
        round=rounds[0], version=2, state="done", finished_at=timezone.now()
    )
    assert datasets() == {rounds[0].number: newest}


def test_who_may_see_it(client, as_alice, alice, rounds):
    Task.objects.update(is_visible=False)
    paths = [
        "/t/nli/",
        "/t/nli/data/",
        "/t/nli/numbers.json",
        "/t/nli/numbers.csv",
    ]
    assert [client.get(path).status_code for path in paths] == [404] * 4
    TaskMember.objects.create(task=Task.objects.get(), user=alice, role="viewer")
    assert [as_alice.get(path).status_code for path in paths] == [200] * 4
    assert "Change this task" not in as_alice.get("/t/nli/").text
    as_alice.logout()
    assert [client.get(path).status_code for path in paths] == [404] * 4


def test_the_same_numbers_for_machines(client, rounds):
    expected = report("nli")["rounds"]
    found = client.get("/t/nli/numbers.json").json()
    assert found["task"] == "nli"
    assert [one.pop("counted_at")[:2] for one in found["rounds"]] == ["20"] * 3
    assert found["rounds"] == expected
    table = list(csv.DictReader(client.get("/t/nli/numbers.csv").text.splitlines()))
    assert [float(line["vmer"]) for line in table] == [1 / 2, 1 / 4, 0]
    assert table[1]["vmer_n"] == "4"
    assert float(table[1]["vmer_low"]) == expected[1]["vmer"]["low"]
    assert table[0]["fleiss_kappa"] == "1.0"
    assert table[2]["krippendorff_alpha"] == ""  # unknown


def test_a_table_of_no_rounds(client, db):
    TaskFactory(code="nli")
    assert client.get("/t/nli/numbers.csv").text == "round\r\n"
    assert client.get("/t/nli/numbers.json").json() == {"task": "nli", "rounds": []}


def test_cards_say_how_far_a_round_is(client, rounds):
    page = client.get("/")
    (card,) = page.context["cards"]
    assert (card.round.number, card.numbers["collected"], card.numbers["judged"]) == (3, 2, 2)
    assert 'class="state closed"' in page.text
    assert "<progress" not in page.text
    Round.objects.update(max_collected=400, max_fooling=5, max_spent=1000, pay_example=10)
    page = client.get("/")
    assert page.text.count("<progress") == 2  # what it may cost is not shown
    assert '<progress max="5" value="0">' in page.text
    assert '<progress max="400" value="2">' in page.text


@pytest.mark.parametrize(
    ("decided", "authors", "shown"), [(19, 9, False), (20, 2, False), (20, 3, True)]
)
def test_few_numbers_are_no_headline(decided, authors, shown):
    vmer = Rate(0.5, 0.2, 0.8, 40, "wilson", authors)
    assert bool(describe_missing({"vmer": vmer, "decided": decided})) != shown


def test_cards_of_rounds_without_judgements_have_no_rate(client, nli):
    assert "catch rate" not in client.get("/").text
    assert "collected" not in client.get("/").text


def counts_of(round):
    return get_all_numbers([round])[round.pk].numbers["collected"]


def test_numbers_are_kept_for_a_minute(rounds):
    first = rounds[0]
    with time_machine.travel(timezone.now(), tick=False) as clock:
        assert counts_of(first) == 2
        one_more(first)
        assert counts_of(first) == 2
        clock.shift(timedelta(seconds=59))
        assert counts_of(first) == 2
        with CaptureQueriesContext(connection) as queries:
            assert counts_of(first) == 2
        assert len(queries) == 0
        clock.shift(timedelta(seconds=2))
        assert counts_of(first) == 3


def test_a_large_round_is_counted_beside_the_request(client, large):
    for _ in range(2):  # the second one begins nothing
        page = client.get("/t/nli/")
        assert page.context["is_counting"]
        assert 'id="nothing-collected"' not in page.text
        assert "#vmer" not in page.text
    assert len(Later.waiting) == 1
    for form in ("json", "csv"):
        answer = client.get(f"/t/nli/numbers.{form}")
        assert (answer.status_code, answer["Retry-After"]) == (503, "60")
    Later.run()
    assert "50.0%" in client.get("/t/nli/data/").text
    assert client.get("/t/nli/numbers.json").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_thread_counts_on_a_connection_of_its_own(nli, monkeypatch):
    one_more(nli)
    one_more(nli)
    threads = []

    class Noted(Thread):
        def start(self):
            threads.append(self)
            super().start()

    monkeypatch.setattr("validation.statistics.cache.MIN_LARGE_ROUND_EXAMPLES", 1)
    monkeypatch.setattr("core.data.adaptive_cache.Thread", Noted)
    assert get_all_numbers([nli]) == {}
    threads[0].join()
    assert counts_of(nli) == 2


def test_a_card_of_a_large_round_waits_too(client, large):
    Round.objects.update(max_collected=400)

    def counts():
        (card,) = client.get("/").context["cards"]
        return card.round.number, card.numbers and (
            card.numbers["collected"],
            card.numbers["judged"],
        )

    assert counts() == (3, None)
    Later.run()
    assert counts() == (3, (2, 2))


def test_old_numbers_are_shown_while_new_ones_are_counted(large):
    first = large[0]
    get_all_numbers([first])
    Later.run()
    one_more(first)
    with time_machine.travel(timezone.now() + timedelta(minutes=2), tick=False):
        assert counts_of(first) == 2
        assert counts_of(first) == 2
        Later.run()
        assert counts_of(first) == 3
        assert not Later.waiting


def test_a_count_that_failed_is_tried_again(large, monkeypatch):
    first = large[0]
    monkeypatch.setattr("validation.statistics.cache._count_all", lambda rounds: 1 / 0)
    assert get_all_numbers([first]) == {}
    with pytest.raises(ZeroDivisionError):
        Later.run()
    monkeypatch.undo()
    assert counts_of(first) == 2


def test_what_took_long_to_count_is_kept_longer(rounds, monkeypatch):
    clocks = iter([0.0, 6.0])
    monkeypatch.setattr("core.data.adaptive_cache.perf_counter", lambda: next(clocks))
    kept = get_headline_numbers(rounds[:1])[rounds[0].pk]
    assert kept.until - kept.counted_at == timedelta(minutes=5)
    assert {"collected", "judged", "decided", "verified"} <= kept.numbers.keys()


def test_counting_anew_needs_as_many_queries_for_many_rounds(client, rounds):
    def queries(path):
        cache.clear()
        with CaptureQueriesContext(connection) as found:
            assert client.get(path).status_code == 200
        return len(found)

    paths = ["/", "/t/nli/", "/t/nli/data/", "/t/nli/numbers.json"]
    before = [queries(path) for path in paths]
    for number in range(4, 9):
        RoundFactory(task=rounds[0].task, number=number, state="closed")
        RoundFactory(
            task=TaskFactory(code=f"t{number}", config_text=rounds[0].task.config_text),
            state="closed",
        )
    assert [queries(path) for path in paths] == before


def test_the_end_tells_who_is_behind_it_and_on_what_terms(client, nli):
    page = client.get("/t/nli/data/").text
    assert "Citation" not in page
    assert "The Dynabench project wrote the passages" in page
    assert 'id="licence"' in page
    assert "CC BY 4.0" in page
    text = nli.task.config_text
    nli.task.config_text = f"{text[: text.index('about:')]}about: {{citation: '@misc{{<nli>}}'}}\n"
    nli.task.save(update_fields=["config_text"])
    page = client.get("/t/nli/data/").text
    assert '<pre tabindex="0">@misc{&lt;nli&gt;}</pre>' in page
    assert "Licence" not in page
