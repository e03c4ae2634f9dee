"""Campaigns: ways in, consent, places, pay, and what people of a panel reach."""

import re
from contextlib import suppress
from datetime import timedelta

import pytest
from django.core import mail
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from core.accounts.models import Annotator, User
from core.errors import Invalid
from dynabench.campaigns import place_services, services
from dynabench.campaigns.jobs import renew_campaigns
from dynabench.campaigns.models import Campaign, LedgerRow, Place
from dynabench.campaigns.retention_services import apply_retention
from dynabench.campaigns.selectors import calculate_numbers, decrypt_panel_ids, list_place_rows
from tasks.models import Task, TaskMember
from tests.support.campaigns import (
    PANEL_IDS,
    YES,
    agree,
    come,
    open_campaign,
    take_part,
)
from tests.support.factories import TaskFactory, UserFactory, scripted_target
from tests.support.judging import answered, judge, write, write_many
from tests.support.writing import open_form
from tests.web.conftest import HTMX
from validation.decisions.consensus_rows import derive_consensus_of_all
from validation.models import Consensus, Validation

pytestmark = pytest.mark.django_db


def send_example(client):
    """Write one that fools the model."""
    return client.post("/t/nli/write/", open_form(client, text="They left the mill."), **HTMX)


@pytest.mark.parametrize("way", ["link", "prolific", "mturk"])
def test_from_the_panels_link_to_the_completion_code(nli, way):
    Task.objects.update(is_visible=False)
    scripted_target(nli, label="entailment")
    campaign = open_campaign(nli.task, way=way)
    users = User.objects.count()
    client, page = come(campaign)
    assert page.redirect_chain == [("/c/study/", 302)]
    assert "what you write" in page.text
    assert User.objects.count() == users  # nothing before the yes
    assert not Place.objects.exists()
    told = PANEL_IDS[way].values()
    assert not any(one in str(client.cookies) for one in told)  # encrypted
    page = client.post("/c/study/consent/", {**YES, "age": ""})
    assert page.status_code == 422
    page = client.post("/c/study/consent/", YES)
    personal = re.search(r"/personal/[\w-]+/", page.text)[0]
    place = Place.objects.get()
    assert (place.state, place.consent.number) == ("working", 1)
    assert decrypt_panel_ids(place).id in told
    assert not any(one in str(Place.objects.values_list()) for one in told)
    source = {"link": "panel"}.get(way, way)
    assert place.annotator.source == source
    assert client.get("/t/nli/write/").status_code == 200
    assert client.get("/me/data/").url == "/c/study/progress/"  # narrow
    client.post("/c/study/finish/")
    assert Place.objects.get().state == "working"  # something is left to do
    assert 'action="/c/study/finish/"' in send_example(client).text  # and no "Write another"
    client.post("/c/study/finish/")
    page = client.get("/c/study/progress/")
    assert "DONE" in page.text
    ends = {
        "link": "https://panel.test/done?cc=DONE",
        "prolific": "https://app.prolific.com/submissions/complete?cc=DONE",
        "mturk": "https://www.mturk.com/mturk/externalSubmit",
    }
    assert ends[way] in page.text
    client.post("/c/study/finish/")  # twice
    row = LedgerRow.objects.get()
    assert (row.kind, row.amount, row.cause) == ("earned", 150, "task")
    stranger = Client()
    assert stranger.get(personal).status_code == 200
    data = b"".join(stranger.get(f"{personal}download/").streaming_content).decode()
    assert "They left the mill." in data
    assert not any(one in data for one in told)
    assert stranger.post(f"{personal}delete/", {"sure": "yes"}).status_code == 200
    place.annotator.refresh_from_db()
    assert place.annotator.user is None
    assert "They left the mill." not in str(place.annotator.examples.values_list("inputs"))
    assert come(campaign)[1].status_code == 410  # a replayed link
    assert stranger.get(personal).status_code == 404


def test_an_id_identifies_and_authorises_nothing(nli):
    campaign = open_campaign(nli.task)
    client, _page = take_part(campaign)
    form = open_form(client)
    client.post(f"/draft/{form['assignment']}/", {"hypothesis": "A draft."})
    other, page = come(campaign)
    assert "_auth_user_id" not in other.session  # a link alone signs nobody in
    assert other.get("/c/study/progress/").status_code == 302
    assert Client(enforce_csrf_checks=True).post("/c/study/on/").status_code == 403
    assert other.post("/c/study/on/").url == "/c/study/progress/"  # in a second browser
    assert come(campaign, other)[1].redirect_chain[-1][0] == "/c/study/progress/"
    assert Annotator.objects.filter(source="panel").count() == 1
    assert "A draft." not in other.get("/t/nli/write/").text
    for forged in ("=1+1", "a b", "", "x" * 101):
        assert Client().get("/c/study/", {"pid": forged}).status_code == 400
    same_machine, page = come(campaign, client, pid="second-person")
    assert "We keep" in page.text
    same_machine.post("/c/study/consent/", YES)
    assert Place.objects.filter(state="working").count() == 2
    before, now = Place.objects.all()
    assert int(same_machine.session["_auth_user_id"]) == now.annotator.user_id
    assert before.annotator_id != now.annotator_id


def test_in_another_campaign_an_id_opens_nothing_and_no_work_counts_twice(nli):
    first = open_campaign(nli.task, way="prolific", each=0, pay_accepted=20)
    client, page = take_part(first)
    assert "/personal/" in page.text
    form = open_form(client)
    client.post(f"/draft/{form['assignment']}/", {"hypothesis": "A draft."})
    second = open_campaign(nli.task, way="prolific", slug="second", pay_accepted=20)
    stranger, page = take_part(second)
    assert page.status_code == 422  # the same work would count in both
    client.post("/c/study/finish/")
    page = stranger.post("/c/second/consent/", YES)
    assert page.url == "/c/second/progress/"  # no link that opens all that is stored
    assert "A draft." not in stranger.get("/t/nli/write/").text
    person = Annotator.objects.get(source="prolific")
    example = write(nli, person.user)
    decided = {"is_verified": True, "state": "decided", "votes": 3, "still_needed": 0}
    Consensus.objects.create(example=example, round=nli, label="neutral", **decided)
    second.all_places.update(state="submitted", submitted_at=timezone.now())
    assert [services.credit_due_pay(campaign=one) for one in (first, second)] == [0, 1]


def test_who_says_no_or_finds_no_place_goes_back_unharmed(nli):
    campaign = open_campaign(nli.task, places=1)
    client, _page = come(campaign)
    page = client.post("/c/study/consent/", {"no": "1"})
    assert "BACK" in page.text
    assert not Place.objects.exists()
    take_part(campaign)
    _other, page = come(campaign, pid="second")
    assert page.status_code == 200
    assert "https://panel.test/done?cc=BACK" in page.text
    campaign.refresh_from_db()
    assert campaign.state == "full"
    late, page = come(campaign, pid="late")
    assert Place.objects.count() == 1
    Place.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    third, page = come(campaign, pid="third")
    assert "We keep" in page.text  # an abandoned place returned
    assert Place.objects.filter(state="lapsed").count() == 1
    third.post("/c/study/consent/", YES)
    late.get("/c/study/", {"pid": "late"})
    page = late.post("/c/study/consent/", YES)  # somebody else was faster
    assert "BACK" in page.text
    assert Place.objects.count() == 2
    third.post("/c/study/leave/")
    assert "BACK" in third.get("/c/study/progress/").text
    services.set_campaign_state(
        campaign=campaign, actor=UserFactory(is_superuser=True), state="closed"
    )
    assert "We keep" not in come(campaign, pid="fourth")[1].text


def test_late_work_is_paid_and_a_new_text_asks_again(nli, alice):
    scripted_target(nli, label="entailment")
    campaign = open_campaign(nli.task)
    client, _page = take_part(campaign)
    send_example(client)
    Place.objects.update(expires_at=timezone.now(), state="lapsed")
    campaign.consents.create(number=2, text="We keep more.")
    assert "We keep more." in client.get("/c/study/progress/").text
    for number in "21":  # the first is out of date, and stays so
        client.post("/c/study/again/", {**YES, "number": number})
        assert Place.objects.get().consent.number == 2
    client.post("/c/study/finish/")
    assert LedgerRow.objects.get().amount == 150


def test_a_budget_reserves_fee_tax_and_bonuses(nli):
    money = {"pay_accepted": 50, "pay_bonus": 100, "fee_percent": 25, "tax_percent": 20}
    campaign = open_campaign(nli.task, places=9, budget=900, **money)
    assert campaign.pay.compute_max_cost(1) == 450
    places = [agree(campaign, "first"), agree(campaign, "second")]
    with pytest.raises(place_services.NoPlace):
        agree(campaign, "third")
    owner = UserFactory(is_superuser=True)
    plan = {"campaign": campaign, "actor": owner, "token": "", "consent": "", "slug": "study"}
    plan |= {name: getattr(campaign, name) for name in services.FIXED_FIELDS}
    for less in ({"budget": 899}, {"budget": 900, "fee_percent": 26}):
        with pytest.raises(Invalid):
            services.change_campaign(**plan, **less)
    for example in write_many(nli, places[0].annotator.user, ["fooled"] * 3):
        decided = {"is_verified": True, "state": "decided", "votes": 3, "still_needed": 0}
        Consensus.objects.create(
            example=example, round=nli, label="neutral", is_validated_error=True, **decided
        )
    Place.objects.filter(pk=places[0].pk).update(state="submitted", submitted_at=timezone.now())
    services.credit_due_pay(campaign=campaign)
    services.credit_due_pay(campaign=campaign)
    assert sorted(LedgerRow.objects.values_list("amount", flat=True)) == [50, 100]  # one was asked


def test_who_is_late_is_paid_and_who_did_nothing_makes_room(nli):
    """Money of who is out of time stays theirs as long again; then unfinished work ends."""
    campaign = open_campaign(nli.task, places=9, budget=300, each=1, minutes=60)
    done, idle = agree(campaign, "done"), agree(campaign, "idle")
    write(nli, done.annotator.user)
    for late, states in ((1, ["lapsed", "lapsed"]), (61, ["submitted", "over"])):
        before = timezone.now() - timedelta(minutes=late)
        Place.objects.update(expires_at=before)
        if late == 1:
            with pytest.raises(place_services.NoPlace):
                agree(campaign, "new")
        place_services.free_places(campaign=campaign)
        assert [*Place.objects.values_list("state", flat=True)] == states
    assert LedgerRow.objects.get().place == done
    assert place_services.submit_place(place=idle).state == "over"
    agree(campaign, "new")
    with pytest.raises(place_services.NoPlace):
        agree(campaign, "newer")


def test_invented_ids_starve_nobody(nli):
    """Of one machine however many: who only looks takes nothing, who agrees a share."""
    campaign = open_campaign(nli.task, places=12)
    attacker = {"REMOTE_ADDR": "2a01:4f8::1"}
    for number in range(20):
        come(campaign, Client(**attacker), pid=f"looks-{number}")
    assert not Place.objects.exists()
    in_all = 0
    for number in range(100):
        with suppress(place_services.NoPlace):
            agree(campaign, f"agrees-{number}", address=f"2a01:4f8::{number:x}")
            in_all += 1
    assert in_all == 2
    _client, page = take_part(campaign, Client(**attacker), pid="agrees-by-page")
    assert "BACK" in page.text
    for number in range(10):  # on an owner's machine, behind a proxy, by IPv4 to an IPv6 socket
        address = ("127.0.0.1", "::1", "10.0.0.1", f"::ffff:8.8.8.{number}")[number % 4]
        _client, page = take_part(campaign, Client(REMOTE_ADDR=address), pid=f"honest-{number}")
        assert "/personal/" in page.text
    campaign.refresh_from_db()
    assert campaign.state == "full"


def test_accounts_and_invitations(nli, as_alice, alice, django_capture_on_commit_callbacks):
    open_campaign(nli.task, way="account", kind="judge")
    assert Client().get("/c/study/").url.startswith("/accounts/login/")
    page = as_alice.get("/c/study/", follow=True)
    assert "We keep" in page.text
    assert as_alice.post("/c/study/consent/", YES).url == "/c/study/progress/"
    assert Place.objects.get().annotator == alice.annotator
    assert as_alice.get("/me/data/").status_code == 200
    TaskMember.objects.update_or_create(task=nli.task, user=alice, defaults={"role": "owner"})
    by_mail = open_campaign(nli.task, slug="mails", way="invitation")
    with django_capture_on_commit_callbacks(execute=True):
        as_alice.post("/own/nli/campaigns/mails/invite/", {"addresses": "a@b.example"})
    key = re.search(r"key=(\S+)", mail.outbox[-1].body)[1]
    many = "\n".join(f"person-{number}@b.example" for number in range(40))
    with django_capture_on_commit_callbacks(execute=True):
        page = as_alice.post("/own/nli/campaigns/mails/invite/", {"addresses": many})
    assert (page.status_code, len(mail.outbox)) == (422, 30)
    assert ("person-28@" in page.text, "person-29@" in page.text) == (False, True)
    carla = Client()
    assert "We keep" in carla.get("/c/mails/", {"key": key}, follow=True).text
    carla.post("/c/mails/consent/", YES)
    assert by_mail.all_places.get().annotator.user.email.endswith("@panel.invalid")
    assert Client().get("/c/mails/", {"key": key + "x"}).status_code == 400
    assert Client().get("/c/mails/").status_code == 400


def missing_of(page):
    """Return how much each step of a draft lacks, without those that lack nothing."""
    steps = re.findall(r'data-step="(\w+)" data-missing="(\d+)"', page.text)
    assert len(steps) == 6
    return {step: int(count) for step, count in steps if count != "0"}


def test_a_plan_may_lack_its_consent_until_it_opens(nli, as_alice, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    work = {"task": nli.task, "actor": alice, "name": "A study", "slug": "study"}
    campaign = services.make_campaign(**work, ethics="Approved.", code_done="DONE")
    assert missing_of(as_alice.get("/own/nli/campaigns/study/")) == {"consent": 1}
    opening = {"campaign": campaign, "actor": alice, "state": "open", "ethics_name": "Ada"}
    with pytest.raises(Invalid):
        services.set_campaign_state(**opening)
    services.change_campaign(campaign=campaign, actor=alice, consent="We keep it.")
    services.set_campaign_state(**opening)
    assert Campaign.objects.get().state == "open"


def test_another_way_in_drops_the_address_that_it_does_not_use(nli, as_alice, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    open_campaign(nli.task, state="draft")
    people = {"way": "prolific", "languages": "", "minimum_age": 18, "requires": ""}
    as_alice.post("/own/nli/campaigns/study/change/people/", people)
    campaign = Campaign.objects.get()
    assert (campaign.way, campaign.completion_url, campaign.code_done) == ("prolific", "", "DONE")


def go_through_plan(client, url, plan):
    """Create a draft in its six steps; return the address of the steps."""
    change = f"{url}study/change/"

    def leads_to(step, page, **more):
        return client.post(f"{change}{step}/", {**plan, **more}).url == page

    assert client.post(f"{url}new/", {**plan, "places": 0}).status_code == 422
    assert client.post(f"{url}new/", plan).url == f"{change}people/"
    assert client.get(change).url == f"{change}consent/"  # which lacks something
    assert leads_to("people", f"{change}consent/")
    assert leads_to("consent", f"{change}work/", go="work")
    assert leads_to("test", f"{url}study/", go="later")
    assert client.post(f"{change}pay/", {**plan, "currency": "€"}).status_code == 422
    assert leads_to("pay", f"{change}panel/")
    assert leads_to("panel", f"{url}study/")
    assert missing_of(client.get(f"{url}study/")) == {"consent": 1}
    assert client.get(f"{change}other/").status_code == 404
    return change


def test_owners_plan_open_and_pay(nli, as_alice, alice, bob):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    url = "/own/nli/campaigns/"
    plan = {
        "name": "A study",
        "slug": "study",
        "kind": "write",
        "way": "link",
        "places": 2,
        "each": 1,
        "minutes": 30,
        "minimum_age": 18,
        "currency": "eur",
        "pay_task": "1.50",
        "pay_accepted": "0.2",
        "pay_bonus": 1,
        "hourly": 12,
        "fee_percent": 0,
        "tax_percent": 0,
        "id_days": 30,
        **dict.fromkeys(("test_items", "test_right", "test_hours", "pay_test"), 0),
        "test_tries": 1,
        "code_done": "DONE",
        "consent": "We keep it.",
    }
    change = go_through_plan(as_alice, url, plan)
    page = as_alice.post(f"{url}study/state/", {"to": "open", "ethics_name": "Ada"}, follow=True)
    assert Campaign.objects.get().state == "draft"  # no ethics statement
    as_alice.post(f"{change}consent/", {**plan, "ethics": "Approved."})
    as_alice.post(f"{url}study/state/", {"to": "open"})
    assert Campaign.objects.get().state == "draft"  # nobody's name stands under it
    as_alice.post(f"{url}study/state/", {"to": "open", "ethics_name": "Ada"})
    campaign = Campaign.objects.get()
    assert (campaign.state, campaign.ethics_name, campaign.consents.count()) == ("open", "Ada", 1)
    assert as_alice.post(f"{change}pay/", {**plan, "pay_task": 1}).status_code == 422
    assert as_alice.post(f"{change}consent/", {**plan, "consent": ""}).status_code == 422
    client, _page = take_part(campaign)
    place = Place.objects.get()
    answered(example := write(nli, place.annotator.user))
    client.post("/c/study/finish/")
    for _ in range(3):
        voter = Client()
        voter.force_login(UserFactory())
        judge(voter, "label:neutral", **HTMX)
    derive_consensus_of_all([example])
    as_alice.post(f"{url}study/settle/")
    campaign.refresh_from_db()
    renew_campaigns()
    rows = dict(LedgerRow.objects.values_list("kind", "amount"))
    assert rows == {"earned": 150, "accepted": 20, "bonus": 100}
    page = as_alice.get(f"{url}study/")
    assert re.search(r"2\.70\sEUR", page.text)
    assert "panel-person-1" not in page.text
    assert "panel-person-1" in as_alice.get(f"{url}study/panel.csv").text
    for kind in ("ledger", "bank", "taxes"):
        assert "panel-person-1" not in as_alice.get(f"{url}study/{kind}.csv").text
    assert ",2.70,EUR,study" in as_alice.get(f"{url}study/bank.csv").text
    as_alice.post(f"{url}study/paid/", {"cause": "bank 1"})
    assert as_alice.post(f"{url}study/paid/", {"cause": "bank 1"}).status_code == 422
    numbers = calculate_numbers(campaign, list_place_rows(campaign))
    assert (numbers.earned, numbers.paid, numbers.fooling, numbers.cost_per_fooling_example) == (
        270,
        270,
        1,
        270,
    )
    page = as_alice.get(f"{url}study/places/{place.pk}/").text
    (work,) = re.findall(r'href="(/own/nli/review/examples/[^"]*)"', page)
    assert place.annotator.pseudonym in as_alice.get(work).text
    page = as_alice.post(f"{url}study/places/{place.pk}/", {"to": "reject"})
    assert (page.status_code, Place.objects.get().state) == (422, "submitted")
    as_alice.post(f"{url}study/places/{place.pk}/", {"to": "reject", "reason": "Too <short>."})
    assert "Too &lt;short&gt;." in client.get("/c/study/progress/").text
    as_alice.post(f"{url}study/places/{place.pk}/", {"to": "approve"})
    assert Place.objects.get().state == "approved"
    as_alice.post(f"{url}study/places/{place.pk}/", {"to": "reject", "reason": "No."})
    assert Place.objects.get().state == "approved"  # which is final
    as_alice.force_login(bob)
    assert as_alice.get(f"{url}study/").status_code == 404


def test_a_budget_that_pays_nobody_opens_nothing(nli, as_alice, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    open_campaign(nli.task, state="draft", ethics="Approved.", budget=149)
    api, url = APIClient(), "/api/v1/tasks/nli/campaigns/study/"
    api.force_authenticate(alice)
    told = {"state": "open", "ethics_name": "Ada"}
    refused = api.patch(url, told, format="json")
    assert (refused.status_code, list(refused.data["error"]["fields"])) == (422, ["state"])
    assert Campaign.objects.get().state == "draft"
    Campaign.objects.update(budget=150)
    page = as_alice.get("/own/nli/campaigns/study/")
    assert 'id="budget-covers" data-paid="1"' in page.text  # said before it is opened
    assert 'data-copy="link"' in page.text
    assert as_alice.get("/own/nli/campaigns/").context["rows"].get().taken == 0
    assert api.patch(url, told, format="json").data["numbers"]["people_paid"] == 1
    assert "<code>about</code>" in as_alice.get("/own/nli/campaigns/study/change/test/").text


def test_frames_are_mechanical_turks_alone(nli):
    campaign = open_campaign(nli.task, way="mturk")
    preview = {**PANEL_IDS["mturk"], "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}
    page = Client().get("/c/study/", preview)
    assert "preview" in page.text
    assert not Place.objects.exists()
    client, page = come(campaign)
    assert (
        "frame-ancestors https://www.mturk.com https://workersandbox.mturk.com;"
        in (page["Content-Security-Policy"])
    )
    assert "X-Frame-Options" not in page
    page = client.post("/c/study/consent/", YES)
    cookie = page.cookies["sessionid"]
    assert (cookie["samesite"], cookie["secure"], cookie["partitioned"]) == ("None", True, True)
    assert "https://www.mturk.com" in client.get("/t/nli/write/")["Content-Security-Policy"]
    assert Client().get("/t/nli/")["X-Frame-Options"] == "DENY"
    elsewhere = {**PANEL_IDS["mturk"], "workerId": "OTHER1", "turkSubmitTo": "https://evil.test"}
    _other, page = take_part(campaign, **elsewhere)
    assert decrypt_panel_ids(Place.objects.last()).back == ""


MOCK = {"SESSION_ID": "035orbpf1pk3"}
LOOKS = {"link": {"pid": "{{id}}"}, "prolific": MOCK, "mturk": {"assignmentId": "${assignmentId}"}}


@pytest.mark.parametrize("way", LOOKS)
@pytest.mark.parametrize("state", ["draft", "open", "closed"])
def test_a_preview_shows_the_texts_and_stores_nothing(nli, way, state):
    open_campaign(nli.task, way=way, state=state)
    client = Client()
    page = client.get("/c/study/", PANEL_IDS[way] | LOOKS[way])
    assert page.status_code == 200
    assert 'id="preview"' in page.text
    assert "We keep" in page.text  # the text to agree to
    assert not Place.objects.exists()
    assert client.get("/c/study/").status_code == 400  # nothing is kept of who came


def test_promises_stay(nli):
    campaign = open_campaign(nli.task, opened_at=timezone.now())
    plan = {name: getattr(campaign, name) for name in services.FIXED_FIELDS}
    admin = UserFactory(is_superuser=True)
    with pytest.raises(Invalid):
        services.change_campaign(
            campaign=campaign, actor=admin, consent="", token="",
            **plan | {"slug": "study", "each": 5},
        )  # fmt: skip


def test_careless_judges_are_proposed_paused_and_appeal(nli, as_alice, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    campaign = open_campaign(nli.task, kind="judge", opened_at=timezone.now(), places=9)
    people = [take_part(campaign, pid=f"p{number}")[0] for number in range(4)]
    places = list(campaign.all_places.select_related("annotator"))
    labels = ("entailment", "neutral", "contradiction")
    for number, example in enumerate(write_many(nli, alice, ["fooled"] * 24)):
        for which, place in enumerate(places):
            said = labels[(number + (number % 6 == which)) % 3]  # now and then a mistake
            said = said if which else labels[0]  # the first one always says the same
            Validation.objects.create(example=example, validator=place.annotator, label=said)
    careless, fine = people[:2]
    url = "/own/nli/campaigns/study/"
    page = as_alice.get(f"{url}quality/")
    shown = [str(place.annotator) in page.text for place in places]
    assert shown == [True, False, False, False]
    renew_campaigns()
    assert not places[0].pauses.exists()  # nobody switched it on
    as_alice.post(f"{url}places/{places[0].pk}/", {"to": "pause", "reason": "Always the same."})
    pause = places[0].pauses.get()
    assert (pause.evidence["judged"], pause.by_rule) == (24, False)
    assert careless.get("/t/nli/judge/").url == "/c/study/progress/"
    assert fine.get("/t/nli/judge/").status_code == 200
    assert "Always the same." in careless.get("/c/study/progress/").text
    for _ in range(2):
        careless.post("/c/study/appeal/", {"appeal": "They are all entailments."})
    page = as_alice.get(f"{url}places/{places[0].pk}/")
    assert page.text.count("They are all entailments.") == 1
    as_alice.post(f"{url}places/{places[0].pk}/", {"to": "lift", "reason": "Fine."})
    late = as_alice.post(f"{url}places/{places[0].pk}/", {"to": "answer", "reason": "Too late."})
    assert (late.status_code, "Too late." in late.text) == (422, True)  # nothing is lost
    assert "Fine." in careless.get("/c/study/progress/").text
    assert careless.get("/t/nli/judge/").status_code == 200
    Campaign.objects.update(pauses_itself=True)
    cache.clear()
    renew_campaigns()
    assert places[0].pauses.count() == 1  # who was looked at before is the owner's
    places[0].pauses.all().delete()
    cache.clear()
    renew_campaigns()
    assert places[0].pauses.get().by_rule
    careless.post("/c/study/finish/")
    assert LedgerRow.objects.filter(place=places[0], kind="earned").exists()


def test_a_pause_holds_at_each_door_of_its_task(nli, as_alice, alice):
    places = []
    for task in (TaskFactory(code="sentiment"), nli.task):
        campaign = open_campaign(task, slug=f"study-{task.pk}", way="account", kind="judge")
        as_alice.get(f"/c/{campaign.slug}/", follow=True)
        as_alice.post(f"/c/{campaign.slug}/consent/", YES)
        places.append(campaign.all_places.get())
    api = APIClient()
    api.force_authenticate(alice)
    for place, is_held in zip(places, (False, True), strict=True):
        place.pauses.create(evidence={})
        answer = api.post("/api/v1/tasks/nli/judging/next/")
        assert "paused" in str(answer.json()) if is_held else answer.status_code == 204
        assert as_alice.get("/t/nli/judge/").status_code == (302 if is_held else 200)


def test_retention(nli):
    campaign = open_campaign(nli.task, id_days=30, closed_at=timezone.now())
    client, _page = take_part(campaign)
    place = Place.objects.get()
    lifted = timezone.now() - timedelta(days=400)
    place.pauses.create(evidence={}, appeal="Why?", lifted_at=lifted)
    call_command("apply_retention", dry_run=True)
    assert place.pauses.exists()
    assert apply_retention() == 1
    last_year = timezone.now().replace(year=9999)
    Campaign.objects.update(closed_at=None, closes_at=last_year)
    assert apply_retention() == 0
    past = timezone.now() - timedelta(days=31)
    Campaign.objects.update(closed_at=None, closes_at=past)  # it ended, and nobody closed it
    call_command("apply_retention")
    place.refresh_from_db()
    assert (place.id_hash, place.sealed_id) == ("", "")
    assert client.get("/c/study/progress/").status_code == 200
