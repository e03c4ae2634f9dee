"""What the first page tells of tasks, and what it keeps to itself."""

import re

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache

from annotation.models import Example
from dynabench.cards import build_cards, show_quotes
from evaluation.models import Dataset, DatasetItem
from tasks.models import SIMULATED_TASK_CODE, Round, TaskMember
from tasks.permissions import cache_roles, load_tasks_with_roles
from tasks.selectors import find_visible_tasks
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.judging import answered, judge, write
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.judging.gold import mark_gold
from validation.judging.queue_services import fill_queue

TEXT = "Nobody waits for the ferry."


@pytest.fixture
def released(nli, alice):
    """A verified model error in the training split of a released round."""
    example = write(nli, alice, hypothesis=TEXT, label="neutral")
    answered(example)
    override_consensus(example=example, owner=UserFactory(), choice=Vote(label="neutral"))
    dataset = Dataset.objects.create(round=nli, version=1, state=Dataset.State.DONE)
    Round.objects.filter(pk=nli.pk).update(state="released")
    return DatasetItem.objects.create(
        dataset=dataset, position=0, split="train", uid="1", example=example, line="{}"
    )


def shown(nli):
    return next(iter(show_quotes([nli.task], 1)), None)


def test_a_quote_is_a_failure_that_was_released(nli, released):
    assert (shown(nli).text, bool(shown(nli).model_answer)) == (TEXT, True)


@pytest.mark.parametrize(
    "change", [{"split": "test"}, {"split": "dev"}, {"is_withdrawn": True}], ids=str
)
def test_it_shows_no_text_that_is_held_back(nli, released, change):
    DatasetItem.objects.update(**change)
    assert shown(nli) is None


def test_it_shows_no_gold_item(nli, released):
    mark_gold(example=released.example, owner=UserFactory())
    assert shown(nli) is None


def test_it_shows_no_text_before_the_release(nli, released):
    Dataset.objects.all().delete()
    assert Example.objects.exists()
    assert shown(nli) is None


def test_sensitive_tasks_come_last_and_show_no_text(hate, nli):
    first, last = build_cards([hate.task, nli.task])
    assert (first.task, last.task) == (nli.task, hate.task)
    assert show_quotes([hate.task, nli.task], 2) == []


def test_closed_tasks_come_last(hate, nli):
    nli.state = "closed"
    nli.save()
    assert [card.task for card in build_cards([nli.task, hate.task])] == [hate.task, nli.task]


def test_nobody_is_sent_to_judge_what_is_not_for_them(client, nli, alice, bob):
    write(nli, bob)
    client.force_login(alice)
    client.get("/t/nli/judge/")  # which leases it

    def numbers():
        home = client.get("/").context
        return {home["to_judge"].waiting, home["cards"][0].waiting}

    assert numbers() == {1}
    assert judge(client, "label:neutral").status_code == 200
    assert numbers() == {0}  # though it waits for two others
    client.force_login(bob)
    assert numbers() == {0}  # who wrote it
    client.force_login(UserFactory())
    assert numbers() == {1}


def test_judging_is_offered_only_to_those_for_whom_something_waits(client, nli, alice, bob):
    def offers():
        pages = [client.get(path).text for path in ("/", "/t/nli/")]
        # A visitor's link leads over signing in.
        links = [len(re.findall("nli(?:/|%2F)judge", page)) for page in pages]
        return links[0] > 0, links[1] > 1  # the tab of the task stays

    assert offers() == (False, False)  # nobody has written yet
    write(nli, bob)
    cache.clear()
    assert offers() == (True, True)  # a visitor may sign in and judge
    client.force_login(bob)
    assert offers() == (False, False)  # who wrote it
    client.force_login(alice)
    assert offers() == (True, True)  # though nobody has opened the queue yet
    client.get("/t/nli/judge/")
    judge(client, "label:neutral")
    cache.clear()
    assert offers() == (False, False)


def test_the_tab_counts_nothing_once_the_last_example_is_judged(client, nli, alice, bob):
    write(nli, bob)
    client.force_login(alice)
    client.get("/t/nli/judge/")  # which queues it

    def count():
        page = client.get("/t/nli/").text
        return page.count('<span class="count">1<')

    assert count() == 1
    assert judge(client, "label:neutral").status_code == 200
    assert count() == 0  # though it waits for two others
    client.force_login(UserFactory())
    assert count() == 1


def test_a_members_tasks_come_first(client, nli, alice, bob):
    other = RoundFactory(task=TaskFactory(code="sentiment"))
    ContextFactory(round=other)
    for number, round in enumerate((nli, nli, other)):
        write(round, bob, number)
        fill_queue(round=round)

    def home():
        values = client.get("/").context
        return values["to_write"], values["to_judge"].task

    client.force_login(alice)
    assert home() == (nli.task, nli.task)
    TaskMember.objects.create(task=other.task, user=alice, role="annotator")
    assert home() == (other.task, other.task)
    TaskMember.objects.update(role="owner")
    assert home() == (other.task, nli.task)


def test_a_page_without_an_icon_gets_ours(client):
    assert client.get("/favicon.ico").url.endswith("favicon.svg")


def test_strangers_try_no_task_that_goes_away_with_the_demo(client, nli, alice):
    scripted_target(nli, label="entailment")
    assert client.get("/").context["taste"]["task"] == nli.task
    nli.task.code = SIMULATED_TASK_CODE
    nli.task.save()
    assert "taste" not in client.get("/").context


def test_tasks_come_with_the_roles_that_are_looked_up_for_them(alice, bob, nli):
    rows = [
        {"role": "owner"},
        {"role": "owner", "is_blind": True},
        {"role": "reviewer", "address": "another@example.org"},  # not alice's, so it waits
        {"role": "judge", "address": alice.email},
    ]
    for number, row in enumerate(rows):
        task = TaskFactory(code=f"task{number}", config_text=nli.task.config_text)
        TaskMember.objects.create(task=task, user=alice, **row)
        TaskMember.objects.create(task=task, user=bob, role="reviewer")
    for user in (alice, bob, UserFactory(is_superuser=True), AnonymousUser()):
        known, plain = (
            load_tasks_with_roles(find_visible_tasks(user), user),
            list(find_visible_tasks(user)),
        )
        cache_roles(user, plain)
        assert known == plain
        assert len(plain) == 5
        for one, other in zip(known, plain, strict=True):
            assert one.roles == other.roles
            assert (one.idle_readers, one.blind_owners) == (other.idle_readers, other.blind_owners)


def test_the_try_out_begins_empty_and_is_filled_by_a_link(client, db):
    round = RoundFactory(task=TaskFactory(code="sentiment"))
    ContextFactory(round=round)
    scripted_target(round, label="neutral", prob={"neutral": 1.0})

    def text_in(query):
        page = client.get("/", query)
        assert 'id="taste"' in page.text
        form = page.context["taste"]["form"]
        return form.main_field.value() or ""

    config = round.task.config
    assert text_in({}) == ""
    assert text_in({"example": "1"}) == config.examples.good[1].input["text"]
    assert text_in({"example": "9"}) == ""
    assert [filler.url for filler in client.get("/").context["taste"]["work"].fillers] == [
        f"/?example={number}" for number in range(3)
    ]
