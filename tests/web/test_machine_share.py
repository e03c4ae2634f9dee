"""Machine-written texts: what is drawn for people, what is kept, and whose name is nowhere."""

import json
import random
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from annotation.machine_text.selectors import (
    MIN_SHOWN_AUTHORS,
    build_machine_share_report,
    describe_machine_share,
    measure_labelled_texts,
)
from annotation.models import Assignment, Example, SignalStudy
from annotation.rules.writing_conditions import DETERRENTS, choose_marker
from core.accounts.services import get_annotator
from core.errors import Invalid
from dynabench.campaigns.models import Campaign, Place
from dynabench.campaigns.services import change_campaign
from tasks.models import TaskMember
from tests.support.campaigns import open_campaign, take_part
from tests.support.factories import UserFactory, scripted_target
from tests.support.judging import decide_many
from tests.support.releases import _own_storage, content, released  # noqa: F401
from tests.support.writing import open_form
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db
URL = "/t/nli/write/"
TYPED = {"pasted": "3", "first_input": "2", "active": "30"}


@pytest.fixture
def campaign(nli):
    scripted_target(nli, label="entailment")
    return open_campaign(nli.task, each=5, deterrents=list(DETERRENTS), opened_at=timezone.now())


@pytest.fixture
def owner(nli):
    user = UserFactory(email="owner@example.org")
    TaskMember.objects.create(task=nli.task, user=user, role="owner")
    return user


def at_work(campaign, condition, **more):
    """Somebody in the campaign, for whose text the condition was drawn."""
    client, _page = take_part(campaign, pid=f"person-{Place.objects.count()}")
    client.get(URL)
    assignment = Assignment.objects.latest("pk")
    drawn = {"condition": condition, "probability": 0.25, **more}
    Assignment.objects.filter(pk=assignment.pk).update(writing_condition=drawn)
    return client, assignment


def send(client, **values):
    """Submit a text, and return the stored example."""
    client.post(URL, open_form(client, **{**TYPED, **values}), **HTMX)
    return Example.objects.latest("pk")


def run(command, *arguments, **options):
    out = StringIO()
    call_command(command, *arguments, stdout=out, **options)
    return json.loads(out.getvalue())


def write_texts(round, authors=24, texts=6, labelled=False, seed=1):
    """Texts by people of whom a quarter use a model, which their signals often show.

    labelled: they are told to, for half of their texts.
    """
    generator, rows = random.Random(seed), []
    context, now = round.contexts.first(), timezone.now()
    campaign = round.task.campaigns.last()
    for author in range(authors):
        annotator = get_annotator(UserFactory())
        Place.objects.create(
            campaign=campaign, annotator=annotator, expires_at=now, began_at=now, consented_at=now
        )
        for text in range(texts):
            is_machine = text % 2 == 0 if labelled else author % 4 == 0
            condition = ("none", "ask")[text % 3 == 0]
            fires = generator.random() < (0.85 if is_machine else 0.08)
            signs = {"condition": condition, "probability": 0.5}
            signs |= {"told": is_machine} if labelled else {}
            if condition == "ask":
                signs["admitted"] = fires and generator.random() < 0.7
            typing = {"pasted": 60 * fires, "characters": 60, "first_input": 1, "active": 30}
            rows.append(
                Example(
                    round=round, context=context, annotator=annotator, goal="neutral",
                    inputs={"hypothesis": f"Text {author} {text}.", "label": "neutral"},
                    digest=f"{seed}-{author}-{text}", outcome="fooled", signs=signs, typing=typing,
                )
            )  # fmt: skip
    return Example.objects.bulk_create(rows)


@pytest.fixture
def study(campaign):
    """A labelled study of the site."""
    examples = write_texts(campaign.task.rounds.get(), 40, 12, labelled=True, seed=2)
    result = measure_labelled_texts(Example.objects.all())
    Example.objects.filter(pk__in=[one.pk for one in examples]).delete()
    Place.objects.all().delete()
    return SignalStudy.objects.create(
        name="study-of-ours", counts=result.counts, signal_rates=result.signal_rates
    )


# Drawn and kept


def test_a_condition_is_drawn_for_each_assignment_and_kept_with_its_probability(campaign):
    client, _page = take_part(campaign)
    drawn = []
    for _ in range(12):
        client.get(URL)
        assignment = Assignment.objects.latest("pk")
        drawn.append(assignment.writing_condition["condition"])
        assert assignment.writing_condition["probability"] == 0.25
        client.get(URL)  # a reload draws nothing new
        assert Assignment.objects.latest("pk") == assignment
        client.post(f"{URL}next/")
    assert set(drawn) <= {"none", *DETERRENTS}
    assert len(set(drawn)) > 1  # all twelve alike: once in four million runs


def test_nothing_is_drawn_outside_a_campaign_or_without_deterrents(campaign, alice, client):
    client.force_login(alice)
    client.get(URL)
    assert Assignment.objects.get().writing_condition is None
    Campaign.objects.update(deterrents=[])
    take_part(campaign)[0].get(URL)
    assert Assignment.objects.latest("pk").writing_condition is None


def test_of_a_campaign_with_other_rounds_nothing_is_drawn(campaign):
    client, _page = take_part(campaign)
    later = campaign.task.rounds.create(number=2)
    campaign.rounds.set([later])
    client.get(URL)
    assert not Assignment.objects.exclude(writing_condition=None).exists()


def test_the_conditions_of_an_open_campaign_stay(campaign, owner):
    with pytest.raises(Invalid) as refused:
        change_campaign(campaign=campaign, actor=owner, deterrents=["ask"])
    assert refused.value.field == "deterrents"


def test_an_owner_switches_deterrents_on_in_the_plan(nli, owner, client):
    made = open_campaign(nli.task, state="draft")
    client.force_login(owner)
    url = f"/own/nli/campaigns/{made.slug}/change/test/"
    values = {
        "test_items": "0", "test_right": "0", "test_tries": "1", "test_hours": "0",
        "deterrents": ["ask", "hidden"],
    }  # fmt: skip
    assert client.post(url, values).status_code == 302
    made.refresh_from_db()
    assert made.deterrents == ["ask", "hidden"]
    assert 'value="ask" id' in client.get(url).text
    assert client.post(url, {**values, "deterrents": ["shame"]}).status_code == 422
    assert client.post(url, {**values, "deterrents": []}).status_code == 302
    made.refresh_from_db()
    assert made.deterrents == []


# On the page


def test_paste_off_marks_the_form_and_a_person_can_switch_it_on(campaign):
    client, _assignment = at_work(campaign, "paste_off")
    page = client.get(URL).text
    assert 'data-paste="off"' in page
    assert 'id="allow-paste"' in page
    # Without JavaScript pasting works, so the notice is hidden until the script shows it.
    assert 'id="paste-off" hidden' in page
    assert send(client).signs == {"condition": "paste_off", "probability": 0.25}
    other, _assignment = at_work(campaign, "none")
    assert "paste-off" not in other.get(URL).text
    assert "data-paste" not in other.get(URL).text


def test_the_instruction_for_programs_reaches_no_reader(campaign):
    client, assignment = at_work(campaign, "hidden")
    page = client.get(URL).text
    word = choose_marker(assignment.pk)
    # `hidden` takes it from the screen, from print and from the accessibility tree; `aria-hidden`
    # from reader modes and tools that ignore styles.
    paragraph = page[page.index('<p hidden aria-hidden="true" id="for-programs">') :]
    assert word in paragraph[: paragraph.index("</p>")]
    assert page.count(word) == 1
    assert send(client, text="They left the mill.").signs["followed"] is False
    client, assignment = at_work(campaign, "hidden")
    word = choose_marker(assignment.pk)
    assert send(client, text=f"They left the {word}.").signs["followed"] is True


def test_the_question_comes_afterwards_and_changes_nothing_for_the_author(campaign):
    client, _assignment = at_work(campaign, "ask")
    assert "model-question" not in client.get(URL).text
    example = send(client)
    page = client.get(f"/attempt/{example.uuid}/").text
    assert 'id="model-question"' in page
    before = Example.objects.filter(pk=example.pk).values("outcome", "retracted_at", "inputs").get()
    url = f"/attempt/{example.uuid}/model/"
    assert client.post(url, {"used": "maybe"}).status_code == 302
    example.refresh_from_db()
    assert "admitted" not in example.signs
    assert client.post(url, {"used": "yes"}).status_code == 302  # without JavaScript
    example.refresh_from_db()
    assert example.signs == {"condition": "ask", "probability": 0.25, "admitted": True}
    assert 'id="model-answered"' in client.post(url, {"used": "no"}, **HTMX).text
    example.refresh_from_db()
    assert example.signs["admitted"] is False
    after = Example.objects.filter(pk=example.pk).values("outcome", "retracted_at", "inputs").get()
    assert after == before


def test_only_the_author_of_a_text_that_was_asked_about_can_answer(campaign, bob):
    client, _assignment = at_work(campaign, "none")
    example = send(client)
    assert "model-question" not in client.get(f"/attempt/{example.uuid}/").text
    url = f"/attempt/{example.uuid}/model/"
    assert client.post(url, {"used": "yes"}).status_code == 403
    stranger = Client()
    stranger.force_login(bob)
    assert stranger.post(url, {"used": "yes"}).status_code == 404
    assert Client().post(url, {"used": "yes"}).status_code in (302, 403, 404)
    example.refresh_from_db()
    assert example.signs == {"condition": "none", "probability": 0.25}


def test_people_of_a_labelled_campaign_read_how_to_write(campaign):
    Campaign.objects.update(is_labelled=True)
    client, _page = take_part(campaign)
    client.get(URL)
    told = Assignment.objects.get().writing_condition["told"]
    assert f'data-told="{"machine" if told else "person"}"' in client.get(URL).text
    assert send(client).signs["told"] is told


# The estimate


def test_without_a_study_only_raw_shares_are_shown(campaign):
    write_texts(campaign.task.rounds.get())
    report = build_machine_share_report(Example.objects.all())
    assert (report["reason"], report["share"], report["study"]) == ("no_rates", None, None)
    assert {(row["condition"], row["signal"]) for row in report["signals"]} == {
        ("none", "pasted"), ("none", "fast"), ("ask", "pasted"), ("ask", "fast"),
        ("ask", "admitted"),
    }  # fmt: skip


def test_raw_shares_of_few_people_are_not_shown(campaign):
    write_texts(campaign.task.rounds.get(), authors=MIN_SHOWN_AUTHORS - 1)
    assert build_machine_share_report(Example.objects.all())["signals"] == []


def test_the_share_with_its_interval(campaign, study):
    write_texts(campaign.task.rounds.get(), authors=40)
    report = build_machine_share_report(Example.objects.all())
    assert report["reason"] == ""
    assert report["low"] <= 0.25 <= report["high"]
    assert report["study"] == "study-of-ours"
    assert "95% interval" in describe_machine_share(report)
    # The same texts always have the same interval.
    assert build_machine_share_report(Example.objects.all()) == report


def test_what_is_not_written_from_nothing_by_people_is_left_out(campaign, study):
    examples = write_texts(campaign.task.rounds.get())
    changes = [
        {"by_program": True}, {"uid": "imported"}, {"parent": examples[0]},
        {"support": {"suggestion": "edit"}}, {"signs": {"condition": "none", "told": True}},
        {"annotator": None},
    ]  # fmt: skip
    for example, change in zip(examples[1:], changes, strict=False):
        Example.objects.filter(pk=example.pk).update(**change)
    Example.objects.filter(pk=examples[-1].pk).update(retracted_at=timezone.now())
    report = build_machine_share_report(Example.objects.all())
    assert report["texts"] == len(examples) - len(changes) - 1
    assert report["left_out"] == len(changes)


def test_the_number_of_queries_does_not_depend_on_texts(campaign, study, django_assert_num_queries):
    for seed in (1, 3):
        write_texts(campaign.task.rounds.get(), seed=seed)
        with django_assert_num_queries(3):
            build_machine_share_report(Example.objects.all())


# The labelled study


def test_a_labelled_campaign_is_made_measured_and_stored(nli, owner):
    made = run("make_signal_study", "nli", owner=owner.email, json=True, places=40, each=12)
    campaign = Campaign.objects.get(slug=made["campaign"])
    assert (campaign.state, campaign.is_labelled) == ("draft", True)
    assert campaign.deterrents == list(DETERRENTS)
    assert campaign.consents.exists()
    with pytest.raises(CommandError):  # no text yet
        run("measure_signals", campaign.slug, store=True, json=True)
    write_texts(nli, 40, 12, labelled=True)
    measured = run("measure_signals", campaign.slug, json=True)
    assert not SignalStudy.objects.exists()
    assert (measured["texts"], measured["authors"]) == (480, 40)
    assert {"none", "ask"} <= set(measured["usable"])
    [pasted] = [
        row for row in measured["rates"] if (row["condition"], row["signal"]) == ("none", "pasted")
    ]
    assert pasted["machine"]["low"] < 0.85 < pasted["machine"]["high"]
    assert pasted["person"]["low"] < 0.08 < pasted["person"]["high"]
    assert run("measure_signals", campaign.slug, store=True, json=True)["stored"] is True
    stored = SignalStudy.objects.get()
    # Sums by stratum, and nothing by which a person could be found.
    assert {key for one in stored.counts for key in one} == {"machine", "person"}
    assert len(stored.counts) == 40
    # The study's own texts are no part of the share of the round.
    assert run("machine_share", task="nli", round=1, json=True)["texts"] == 0


def test_commands_name_what_is_missing(campaign):
    for command, arguments, options in [
        ("measure_signals", ["nothing"], {}),
        ("measure_signals", [campaign.slug], {}),  # no labelled one
        ("machine_share", [], {"campaign": "nothing"}),
        ("machine_share", [], {"task": "nli", "round": 9}),
        ("machine_share", [], {"campaign": campaign.slug, "round": 1}),
        ("make_signal_study", ["nli"], {"owner": "nobody@example.org"}),
    ]:
        with pytest.raises(CommandError):
            run(command, *arguments, **options)


# Where it is shown, and that no person is near


def find_people(text):
    """The names and ids of authors that the text contains."""
    users = [get_annotator(example_user) for example_user in _authors()]
    names = {one.pseudonym for one in users} | {one.user.email for one in users}
    return {name for name in names if name and name in text}


def _authors():
    return [one.annotator.user for one in Example.objects.select_related("annotator__user")]


def test_owners_see_the_share_and_nobody_elses_signals(campaign, study, owner, client):
    write_texts(campaign.task.rounds.get(), authors=40)
    client.force_login(owner)
    page = client.get(f"/own/nli/campaigns/{campaign.slug}/").text
    section = page[page.index('id="machine-share"') :]
    section = section[: section.index("</section>")]
    assert 'data-reason=""' in section
    assert not find_people(section)
    assert 'id="machine-share"' in client.get("/own/nli/results/").text
    # What campaigns show of single people has no sign of the new evidence.
    place = Place.objects.first()
    for path in (f"places/{place.pk}/", "quality/", "coverage/"):
        shown = client.get(f"/own/nli/campaigns/{campaign.slug}/{path}").text
        for word in ("admitted", "followed", "paste_off", "told"):
            assert word not in shown, (path, word)
    for number in ("places", "answers", "ledger"):
        file = client.get(f"/own/nli/campaigns/{campaign.slug}/{number}.csv")
        if file.status_code == 200:
            assert "admitted" not in b"".join(file).decode()


def test_the_api_has_sums_alone(campaign, study, owner, api_get):
    write_texts(campaign.task.rounds.get(), authors=40)
    found = api_get(owner, f"/api/v1/tasks/nli/campaigns/{campaign.slug}/")
    assert found["machine_share"]["low"] <= 0.25 <= found["machine_share"]["high"]
    assert found["deterrents"] == list(DETERRENTS)
    of_round = api_get(owner, "/api/v1/tasks/nli/rounds/1/machine-share/")
    assert of_round == found["machine_share"]
    assert not find_people(json.dumps(of_round))
    # Not one text: neither the export nor the list of examples has a column of signs.
    for path in ("/api/v1/tasks/nli/rounds/1/examples/", "/api/v1/tasks/nli/rounds/1/"):
        text = json.dumps(api_get(owner, path, ok=False))
        assert "admitted" not in text
        assert '"signs"' not in text


@pytest.fixture
def api_get(client):
    def get(user, path, ok=True):
        client.force_login(user)
        response = client.get(path)
        assert response.status_code == 200 or not ok, (path, response.content)
        return response.json() if response.status_code == 200 else {}

    return get


def test_a_release_says_the_share_once_and_nothing_of_a_row(campaign, study, owner):
    round = campaign.task.rounds.get()
    examples = write_texts(round, authors=40)
    decide_many(examples, ["neutral"] * len(examples), owner)
    round.state = "closed"
    round.save()
    dataset = released(round)
    sentence = dataset.numbers["machine_share"]
    assert "95% interval" in sentence
    for name in ("README.md", "benchmark_card.json", "croissant.json"):
        assert sentence in content(dataset, name).decode()
    for name in ("train.jsonl", "dev.jsonl", "test.jsonl"):
        text = content(dataset, name).decode()
        for word in ("admitted", "followed", "paste_off", "signs", "typing"):
            assert f'"{word}"' not in text
