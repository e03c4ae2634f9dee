"""What comes before the work of a campaign: questions, a tour, a test; and an owner's own rules."""

import re

import pytest
from django.core.cache import cache
from django.utils import timezone

from annotation.models import ShownExample
from core.errors import Refused
from dynabench.campaigns import place_services
from dynabench.campaigns.before.questionnaire_services import answer_closing_questions
from dynabench.campaigns.before.tour import build_tour
from dynabench.campaigns.jobs import renew_campaigns
from dynabench.campaigns.models import Campaign, LedgerRow, Place, Qualification
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import calculate_numbers, count_done_work, list_place_rows
from dynabench.people.deletion.services import delete_person
from tasks.models import TaskMember
from tests.support.campaigns import (
    YES,
    come,
    open_campaign,
    paid_place,
    take_part,
)
from tests.support.factories import TaskFactory
from tests.support.judging import write_many
from tests.support.writing_aids import earlier_round, publish
from validation.models import Gold, GoldAnswer

pytestmark = pytest.mark.django_db


def gold_items(nli, alice, number):
    """Decided examples that are gold, with explanations."""
    for example in write_many(nli, alice, ["fooled"] * number):
        Gold.objects.create(example=example, label="neutral", explanation="Nothing says so.")


def test_after_a_tour_alone_one_begins_at_once(nli, as_alice):
    tour = open_campaign(nli.task, slug="tour", tour="Read this.", test_hours=9)
    client, _page = take_part(tour)
    assert "/c/tour/leave/" in client.get("/c/tour/test/").text
    on = client.post("/c/tour/test/", follow=True)  # nothing was asked: no page in between
    assert [url for url, _status in on.redirect_chain] == ["/c/tour/next/", "/t/nli/write/"]
    row = Qualification.objects.get()
    assert (row.tries, row.passed_at) == (0, None)  # nobody is qualified who was not tested


def test_a_tour_and_a_test_come_first(nli, as_alice, alice):
    gold_items(nli, alice, 6)
    plan = {"test_items": 2, "test_right": 2, "test_tries": 2, "pay_test": 40, "kind": "judge"}
    campaign = open_campaign(nli.task, tour="First **this**.\n---\nThen that.", **plan)
    url = "/c/study/test/"
    client, _page = take_part(campaign)
    assert client.get("/t/nli/judge/").url == "/c/study/progress/"
    assert client.get("/c/study/progress/").url == url
    page = client.get(url)
    assert "First" in page.text
    assert "Then that." in page.text
    asked = re.findall(r'name="([0-9a-f-]{36})"', page.text)
    uuids = sorted(set(asked))
    assert len(uuids) == 2
    assert client.post(url, {uuids[0]: "label:neutral"}).status_code == 422
    assert client.post(url, dict.fromkeys(uuids, "label:none of these")).status_code == 422
    wrong = dict.fromkeys(uuids, "label:entailment")
    assert "Nothing says so." in client.post(url, wrong).text
    second = set(re.findall(r'name="([0-9a-f-]{36})"', client.get(url).text))
    assert not second & set(uuids)  # nobody meets an item twice
    page = client.post(url, dict.fromkeys(second, "label:neutral"))
    assert client.get("/t/nli/judge/").status_code == 200
    place = campaign.all_places.get()
    assert (place.state, GoldAnswer.objects.filter(counts=False).count()) == ("working", 4)
    assert count_done_work(place).judged == 0
    Place.objects.update(state="testing")
    Campaign.objects.update(test_hours=9)
    client.post(url)  # who passed need not wait
    assert campaign.all_places.get().state == "working"
    Campaign.objects.update(test_hours=0)
    fails, _page = take_part(campaign, pid="second")
    for _ in range(2):
        items = set(re.findall(r'name="([0-9a-f-]{36})"', fails.get(url).text))
        fails.post(url, dict.fromkeys(items, "label:entailment"))
    assert Place.objects.last().state == "screened"
    assert LedgerRow.objects.get().amount == 40  # paid for the time
    numbers = calculate_numbers(campaign, list_place_rows(campaign))
    assert (numbers.taken, numbers.submitted, numbers.earned) == (1, 0, 40)
    assert fails.get("/t/nli/judge/").status_code == 302
    other = open_campaign(nli.task, slug="other", requires=nli.task, way="account")
    as_alice.get("/c/other/", follow=True)
    as_alice.post("/c/other/consent/", YES)
    assert not other.all_places.exclude(annotator=None).exists()
    Qualification.objects.create(
        annotator=alice.annotator, task=nli.task, tried_at=timezone.now(), passed_at=timezone.now()
    )
    as_alice.post("/c/other/consent/", YES)
    assert other.all_places.get(annotator=alice.annotator).state == "working"


QUESTIONS = """\
questions:
  - {name: years, type: number, minimum: 0}
  - {name: note, type: text, required: false}
about:
  - {name: gender, type: multiclass, labels: [woman, {value: man, display: a man}]}
"""


def test_questions_after_the_work_come_once_before_it_is_submitted(nli, as_alice, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    after = (
        "after:\n  - {name: sure, type: number}\n  - {name: note, type: text, required: false}\n"
    )
    open_campaign(nli.task, questions=after, each=0)
    client, _page = take_part(Campaign.objects.get())
    url = "/c/study/questions/"
    # Nothing comes before the work, and nobody submits without the answers.
    assert Place.objects.get().state == "working"
    with pytest.raises(Refused):
        place_services.submit_place(place=Place.objects.get())
    assert client.post("/c/study/finish/").url == url
    assert client.get(url).status_code == 200
    assert client.post(url, {"q-note": "Left."}).status_code == 422
    assert Place.objects.get().answers is None
    client.post(url, {"q-sure": "4"})
    place = Place.objects.get()
    assert (place.state, place.answers) == ("submitted", {"sure": 4.0, "note": None})
    assert client.get(url).url == "/c/study/progress/"
    with pytest.raises(Refused):
        answer_closing_questions(place=place, answers={"sure": 1.0})
    rows = as_alice.get("/own/nli/campaigns/study/answers.csv").text.splitlines()
    assert rows == ["person,sure,note", f"{place.annotator.pseudonym},4,"]
    assert as_alice.get(f"/own/nli/campaigns/study/places/{place.pk}/").status_code == 200


def test_questions_after_the_work_wait_for_it(nli):
    open_campaign(nli.task, questions="after: [{name: sure, type: number}]", each=1)
    client, _page = take_part(Campaign.objects.get())
    assert client.get("/c/study/questions/").url == "/c/study/progress/"
    client.post("/c/study/questions/", {"q-sure": "4"})
    with pytest.raises(Refused):
        answer_closing_questions(place=Place.objects.get(), answers={"sure": 1.0})
    assert Place.objects.get().answers is None


def test_questions_come_first_and_what_is_told_of_oneself_stays_apart(nli, as_alice, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    campaign = open_campaign(nli.task, questions=QUESTIONS)
    client, _page = take_part(campaign)
    url = "/c/study/questions/"
    assert "/c/study/leave/" in client.get(url).text
    assert client.get("/t/nli/write/").url == "/c/study/progress/"
    assert client.get("/c/study/progress/", follow=True).redirect_chain[-1][0] == url
    assert (
        calculate_numbers(campaign, list_place_rows(campaign)).taken == 1
    )  # as nobody else gets the place
    for wrong in ({}, {"q-years": "-1"}, {"q-years": "3", "q-gender": "none of these"}):
        assert client.post(url, {**wrong, "q-note": "Kept."}).status_code == 422
    assert Place.objects.get().answers is None  # nothing is half stored
    second, _page = come(campaign)
    second.post("/c/study/on/")
    told = {"q-years": "3", "q-note": "=1+1", "q-gender": "woman"}
    assert client.post(url, told).url == "/c/study/progress/"
    client.post(url, {**told, "q-years": "4"})  # once
    place = Place.objects.get()
    assert (place.state, place.answers) == ("working", {"years": 3.0, "note": "=1+1"})
    assert place.about == {"gender": "woman"}
    for browser in (client, second):
        browser.get("/c/study/progress/")
        assert browser.get("/t/nli/write/").status_code == 200
    name = place.annotator.pseudonym
    owns = "/own/nli/campaigns/study/"
    assert as_alice.get(f"{owns}answers.csv").text == f"person,years,note\r\n{name},3,'=1+1\r\n"
    assert "=1+1" in as_alice.get(f"{owns}places/{place.pk}/").text
    LedgerRow.objects.create(place=place, kind="paid", amount=1, currency="EUR", cause="@SUM(A1)")
    assert ",'@SUM(A1),1,EUR" in as_alice.get(f"{owns}ledger.csv").text
    news = client.get("/me/news/").text  # they have no mail, so this page alone tells them
    assert ("0.01 EUR" in news, 'name="digest"' in news) == (True, False)
    for number in range(12):
        one = paid_place(campaign, 100 + number)
        about = {"gender": "man" if number else "woman"}
        campaign.all_places.filter(pk=one.pk).update(about=about)
    page = as_alice.get(f"{owns}coverage/").text
    assert ("a man: 11" in page, "woman: 2" in page) == (True, False)
    delete_person(user=place.annotator.user)
    place.refresh_from_db()
    assert (place.answers, place.about) == (None, {})


def test_an_owner_s_languages_are_checked_by_line(nli, as_alice, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    chosen = TaskFactory(code="sentiment")  # by another owner
    open_campaign(nli.task, requires=chosen)
    wrong = {
        "questions": "questions:\n  - {name: a, type: txt}",
        "own_rules": "\ngold below 0.7 after 8\ngold below 7",
        "tour": "{context 9999999}",
    }
    change = "/own/nli/campaigns/study/change/"
    page = as_alice.post(f"{change}test/", wrong)
    errors = page.context["form"].errors
    assert page.status_code == 422
    assert "line 2, column" in errors["questions"][0]
    assert re.search(r"\b3\b", errors["own_rules"][0])
    assert "9999999" in errors["tour"][0]
    assert "type: txt" in page.text  # what was typed stays
    page = as_alice.post(f"{change}people/", {"requires": chosen.pk})
    assert "requires" not in page.context["form"].errors
    page = as_alice.post(f"{change}work/", {"minutes": 2**31 - 1})
    assert "minutes" in page.context["form"].errors  # no date is so late


def test_an_owner_s_rule_proposes_and_pauses_where_that_is_on(nli, as_alice, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    rules = "pasted above 0.5 after 8\nagreement below chance + 0.2 after 20"
    campaign = open_campaign(nli.task, opened_at=timezone.now(), own_rules=rules)
    client, _page = take_part(campaign)
    place = Place.objects.get()
    for example in write_many(nli, place.annotator.user, ["fooled"] * 8):
        example.typing = {"pasted": 9, "characters": 10, "first_input": 1, "active": 2}
        example.save()
    url = "/own/nli/campaigns/study/"
    assert str(place.annotator) in as_alice.get(f"{url}quality/").text
    renew_campaigns()
    assert not place.pauses.exists()
    Campaign.objects.update(pauses_itself=True)
    cache.clear()
    renew_campaigns()
    [told] = place.pauses.get().evidence["broken"]
    assert (told["measure"], told["n"], told["value"]) == ("pasted", 8, 1)
    assert "100%" in client.get("/c/study/progress/").text
    client.post("/c/study/appeal/", {"appeal": "I write\0 in an editor."})
    assert "I write in an editor." in as_alice.get(f"{url}places/{place.pk}/").text


def test_a_tour_shows_items_without_their_labels(nli, alice):
    """The task page's own, released rows to train on, named gold; nothing that models face."""
    gold, fresh = write_many(nli, alice, ["fooled"] * 2)
    earlier = earlier_round(nli)
    trained, tested, known = write_many(earlier, alice, ["fooled"] * 3)
    Gold.objects.create(example=gold, label="neutral")
    Gold.objects.create(example=known, label="neutral")  # and models are tested on it
    for example, text in zip((trained, tested, fresh), ("Trained", "Tested", "Fresh"), strict=True):
        example.inputs["hypothesis"] = f"{text} on it."
        example.save()
    for example, split in ((trained, "train"), (tested, "test"), (known, "held")):
        publish(example, split)
    context = nli.contexts.first()
    shown = len(nli.task.config.examples.good) + len(nli.task.config.examples.bad)
    named = [f"{{item {one.uuid}}}" for one in (gold, tested, fresh, known)]
    tour = "\n".join(["{item}"] * (shown + 2) + [*named, f"{{context {context.pk}}}"])
    campaign = open_campaign(nli.task, tour=f"Look:\n{tour}", test_items=5)
    [parts] = build_tour(campaign)
    items = [one.item for one in parts if one.item]
    assert len(items) == shown + 1 + 1 + 1  # one released, one named gold, one context
    client, _page = take_part(campaign)
    page = client.get("/c/study/test/")
    assert "Trained on it." in page.text
    assert ("Tested on it." in page.text, "Fresh on it." in page.text) == (False, False)
    titles = {label for item in items for label, _words in item.inputs}
    assert titles == {"Statement"}  # no label
    assert str(gold.uuid) not in page.text  # who saw it is not tested with it
    shown = ShownExample.objects.filter(way="tour").values_list("example", flat=True)
    assert {*shown} == {gold.pk, trained.pk}  # nor given it to judge


def test_an_owner_asks_questions_without_yaml(nli, as_alice, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    campaign = open_campaign(nli.task)
    url = "/own/nli/campaigns/study/questions/"

    def sent(*rows):
        data = {"questions-TOTAL_FORMS": len(rows), "questions-INITIAL_FORMS": 0}
        for number, row in enumerate(rows):
            data |= {f"questions-{number}-{name}": said for name, said in row.items()}
        return as_alice.post(url, data)

    assert len(as_alice.get(url).context["rows"].forms) == 2
    years = {"words": "Years of English", "kind": "number", "is_required": "on"}
    gender = {"words": "Gender", "kind": "multiclass", "choices": "woman\r\nman", "is_about": "on"}
    wrong = [{**years, "kind": "multilabel"}, {**years, "is_about": "on"}, {**years, "name": "1"}]
    assert [sent(one).status_code for one in wrong] == [422] * 3
    assert sent({**years, "name": "same"}, {**gender, "name": "same"}).status_code == 422
    assert sent(years, gender, {"words": "", "kind": "text"}).status_code == 302
    campaign.refresh_from_db()
    asked = read_questionnaire(campaign.questions)
    assert [one.name for one in asked.questions] == ["years_of_english"]
    assert [one.values for one in asked.about] == [("woman", "man")]
    assert len(as_alice.get(url).context["rows"].forms) == 4
    Campaign.objects.update(questions="questions: [{name: it, type: slider}]")
    assert as_alice.get(url).context["is_yaml"]
    assert sent(years).context["is_yaml"]
