"""Mixed rounds: the arm of each text is drawn at random within a person, and nobody chooses it."""

import re
from collections import Counter

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.attempts.support_record import describe_program_support, describe_support
from annotation.context_picking.services import assign, assign_next, assign_sent_back, change_goal
from annotation.models import Assignment, Example, Suggestion
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from core.errors import Invalid, Refused
from dynabench.adversaries.board import build_board
from dynabench.adversaries.models import Adversary, AdversaryRun
from dynabench.adversaries.services import retire_adversary
from dynabench.mixed_rounds.selectors import measure_arms
from dynabench.mixed_rounds.services import end_mixing, set_arm_shares, start_mixed_round
from tasks.models import Generator, TaskMember
from tests.support.adversaries import make_adversary, run_to_its_end, sentiment_round
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.mixed_rounds import ALL, DRAFT, mixed_round, write_once, write_texts
from tests.support.writing_aids import generator
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus

pytestmark = pytest.mark.django_db
WRITE = "/t/sentiment/write/"


@pytest.fixture
def person(client):
    person = UserFactory()
    client.force_login(person)
    return person


def take_arm(round, person, arm):
    """The person's assignment, as if this arm had been drawn."""
    assignment = assign(annotator=get_annotator(person), round=round)
    Assignment.objects.filter(pk=assignment.pk).update(arm=arm)
    assignment.refresh_from_db()
    return assignment


# The draw


def test_each_urn_of_a_person_holds_the_arms_by_their_shares(person):
    round, _owner = mixed_round(people=2, helped=1, drafts=1, machines=3)
    for writer in (person, UserFactory()):
        assignments = write_texts(round, writer, 12)
        for first in range(0, 12, 4):
            arms = Counter(one.arm for one in assignments[first : first + 4])
            assert arms == {"people": 2, "helped": 1, "drafts": 1}
        # The last draw of an urn is certain.
        assert {one.arm_probability for one in assignments[3::4]} == {1.0}
        assert {one.arm_probability for one in assignments[::4]} <= {0.5, 0.25}


def test_the_arm_is_kept_on_reload_and_in_a_second_tab(person, client):
    _round, _owner = mixed_round()
    client.get(WRITE)
    before = Assignment.objects.values("pk", "arm", "arm_probability").get()
    for _ in range(5):
        client.get(WRITE)
    client.get(f"{WRITE}?support=suggestion")
    assert Assignment.objects.values("pk", "arm", "arm_probability").get() == before


def test_skipping_a_text_gives_no_other_arm(person, client):
    round, _owner = mixed_round()
    client.get(WRITE)
    first = Assignment.objects.get()
    for _ in range(6):
        client.post(f"{WRITE}next/", {"want": "passage"})
    skipped = Assignment.objects.filter(keeps_arm=True)
    assert skipped.count() == 6
    assert {one.arm for one in skipped} == {first.arm}
    assert {one.arm_probability for one in skipped} == {first.arm_probability}
    # They count as one draw.
    last = Assignment.objects.latest("pk")
    write_once(last)
    arms = [first.arm, *(one.arm for one in write_texts(round, person, 2))]
    assert Counter(arms) == {"people": 1, "helped": 1, "drafts": 1}


def test_a_text_that_a_program_sent_uses_up_no_draw(person):
    round, _owner = mixed_round()
    annotator = get_annotator(person)
    first = assign(annotator=annotator, round=round)
    write_once(first)
    first.attempt_set.update(by_program=True)
    assert assign(annotator=annotator, round=round, is_fresh=True).keeps_arm


def test_another_goal_keeps_the_arm_and_an_edit_is_not_offered(person):
    round, _owner = mixed_round()
    first = assign(annotator=get_annotator(person), round=round)
    assert change_goal(assignment=first).arm == first.arm
    edited = assign_next(annotator=first.annotator, round=round, requested_kind="edit")
    assert (edited.parent, edited.arm, edited.keeps_arm) == (None, first.arm, True)


def test_a_text_sent_back_stays_in_its_arm_and_is_no_draw(person, monkeypatch):
    round, _owner = mixed_round()
    first = assign(annotator=get_annotator(person), round=round)
    example = write_once(first)
    monkeypatch.setattr("annotation.selectors.is_sent_back", lambda example: True)
    mended = assign_sent_back(annotator=first.annotator, example=example)
    assert (mended.arm, mended.arm_probability) == (first.arm, first.arm_probability)
    arms = [first.arm, *(one.arm for one in write_texts(round, person, 2))]
    assert Counter(arms) == {"people": 1, "helped": 1, "drafts": 1}


def test_new_shares_begin_a_new_urn_and_the_same_ones_do_not(person):
    round, owner = mixed_round()
    first = write_texts(round, person, 1)[0]
    set_arm_shares(round=round, actor=owner, shares=ALL)
    arms = [first.arm, *(one.arm for one in write_texts(round, person, 2))]
    assert Counter(arms) == {"people": 1, "helped": 1, "drafts": 1}
    set_arm_shares(round=round, actor=owner, shares={"people": 1, "drafts": 2})
    arms = [one.arm for one in write_texts(round, person, 3)]
    assert Counter(arms) == {"people": 1, "drafts": 2}
    assert LogEntry.objects.filter(action="round.mixed").count() == 2


def test_after_mixing_texts_are_in_no_arm(person):
    round, owner = mixed_round()
    write_texts(round, person, 1)
    end_mixing(round=round, actor=owner)
    end_mixing(round=round, actor=owner)
    later = write_texts(round, person, 1)[0]
    assert (later.arm, later.arm_probability, later.shares_number) == ("", None, None)
    assert LogEntry.objects.filter(action="round.unmixed").count() == 1


# What people get


@pytest.mark.parametrize(("arm", "has_button"), [("people", 0), ("helped", 1), ("drafts", 0)])
def test_only_the_helped_can_ask_for_suggestions(person, client, arm, has_button):
    round, _owner = mixed_round()
    assignment = take_arm(round, person, arm)
    assert client.get(WRITE).text.count('value="suggestion"') == has_button
    sent = {"assignment": assignment.pk, "want": "suggestion", "goal": assignment.goal}
    status = client.post(f"{WRITE}support/", sent).status_code
    assert status == (302 if has_button else 404)
    asked = Suggestion.objects.filter(action="").count()
    assert asked == has_button


def test_a_draft_is_written_once_and_stands_in_the_form(person, client):
    round, _owner = mixed_round()
    assignment = take_arm(round, person, "drafts")
    for _ in range(3):
        page = client.get(WRITE)
        assert f"{DRAFT}</textarea>" in page.text
        assert 'id="drafted"' in page.text
    assert Suggestion.objects.get().text == DRAFT
    # What the person has typed since is not replaced.
    Assignment.objects.update(draft={"text": "My own text."})
    assert "My own text.</textarea>" in client.get(WRITE).text
    support = describe_support(assignment, DRAFT.replace("late", "early"))
    assert (support["arm"], support["suggestion"], support["edit_distance"]) == (
        "drafts",
        "edit",
        4,
    )
    assert support["suggested_by"] == "muse"
    assert describe_support(assignment, DRAFT)["edit_distance"] == 0


def test_another_goal_gets_another_draft(person, client):
    round, _owner = mixed_round()
    assignment = take_arm(round, person, "drafts")
    client.get(WRITE)
    client.post(f"{WRITE}next/", {"want": "goal"}, follow=True)
    assert assignment.suggestions.count() == 2


def test_without_an_answer_the_text_stays_in_its_arm(person, client):
    round, _owner = mixed_round()
    Generator.objects.update(options={"error": "slow"})
    assignment = take_arm(round, person, "drafts")
    page = client.get(WRITE)
    assert page.status_code == 200
    assert 'id="not-drafted"' in page.text
    support = describe_support(assignment, "My own text.")
    assert support["arm"] == "drafts"
    assert "edit_distance" not in support


def test_programs_of_people_are_in_no_arm(person):
    round, _owner = mixed_round()
    assert describe_program_support(take_arm(round, person, "people")) is None


def test_judges_see_the_same_page_whatever_the_arm(client):
    round, _owner = mixed_round()
    assignment = take_arm(round, UserFactory(), "drafts")
    example = write_once(assignment, outcome="fooled")
    client.force_login(UserFactory())

    def read_page(support):
        Example.objects.update(support=support)
        page = client.get("/t/sentiment/judge/")
        assert example.inputs["text"] in page.text
        return re.sub(r'(name="csrfmiddlewaretoken" value|nonce|data-at)="[^"]*"', "", page.text)

    record = {"arm": "drafts", "arm_probability": 0.5, "edit_distance": 3, "suggestion": "edit"}
    assert read_page(record) == read_page({"arm": "machines"}) == read_page(None)


# Machines


def test_machines_write_their_share_and_their_lead(monkeypatch):
    round, _owner = mixed_round(people=1, machines=1)
    adversary = Adversary.objects.get()
    monkeypatch.setattr("dynabench.adversaries.share_services.count_allowed_machine_texts",
                        lambda shares, people_texts: people_texts)  # fmt: skip
    run = run_to_its_end(adversary)
    assert (run.ended_by, run.examples) == ("share", 0)
    write_texts(round, UserFactory(), 1)
    run = run_to_its_end(adversary)
    assert run.examples == 1
    example = Example.objects.get(by_program=True)
    assert example.support == {"arm": "machines"}


def test_machines_without_a_share_write_nothing():
    _round, _owner = mixed_round(people=1)
    run = run_to_its_end(Adversary.objects.get())
    assert (run.ended_by, run.examples) == ("share", 0)


def test_outside_of_mixed_rounds_machines_are_in_no_arm():
    round, owner = sentiment_round()
    run_to_its_end(make_adversary(round, owner))
    assert Example.objects.get().support is None


# Shares that a round cannot have


@pytest.mark.parametrize(
    ("shares", "field"),
    [
        ({"people": 1, "helped": 1}, "helped"),
        ({"people": 1, "drafts": 1}, "drafts"),
        ({"people": 1, "machines": 1}, "machines"),
        ({"people": 0, "machines": 1}, "people"),
    ],
)
def test_a_share_that_nothing_serves_is_refused_at_its_field(client, shares, field):
    round, owner = sentiment_round()
    with pytest.raises(Invalid) as refusal:
        set_arm_shares(round=round, actor=owner, shares=shares)
    assert refusal.value.field == field
    client.force_login(owner)
    address = reverse("own-mixed:arms", args=["sentiment", round.number])
    page = client.post(address, dict.fromkeys(ALL, 0) | shares)
    assert page.status_code == 422
    assert {*page.context["form"].errors} == {field}
    round.refresh_from_db()
    assert round.arm_shares is None


def test_a_retired_adversary_serves_no_share():
    round, owner = mixed_round()
    retire_adversary(adversary=Adversary.objects.get(), actor=owner)
    with pytest.raises(Invalid) as refusal:
        set_arm_shares(round=round, actor=owner, shares=ALL | {"people": 2})
    assert refusal.value.field == "machines"


@pytest.mark.parametrize("state", ["closed", "released"])
def test_a_round_that_is_over_keeps_its_shares(state):
    round, owner = mixed_round()
    type(round).objects.filter(pk=round.pk).update(state=state)
    for change in (
        lambda: set_arm_shares(round=round, actor=owner, shares=ALL | {"people": 2}),
        lambda: end_mixing(round=round, actor=owner),
    ):
        with pytest.raises(Refused) as refusal:
            change()
        assert refusal.value.code == "closed"


def test_tasks_without_a_text_to_write_are_not_mixed():
    round = RoundFactory(task=TaskFactory(code="secret"))
    with pytest.raises(Refused) as refusal:
        set_arm_shares(round=round, actor=UserFactory(), shares={"people": 1})
    assert refusal.value.code == "unfit"


# One click


def test_one_click_starts_a_mixed_round(client):
    round, owner = sentiment_round()
    round.task.is_official = True
    round.task.save()
    client.force_login(owner)
    page = reverse("own-mixed:arms", args=["sentiment", round.number])
    assert 'id="start-mixed"' in client.get(page).text
    for _ in range(2):
        client.post(reverse("own-mixed:start", args=["sentiment", round.number]))
    round.refresh_from_db()
    assert round.arm_shares == {"people": 1, "helped": 0, "drafts": 0, "machines": 1}
    assert round.shares_number == 1
    runs = AdversaryRun.objects.values_list("adversary__kind", "state")
    assert sorted(runs) == [("rules", "queued"), ("search", "queued")]
    assert 'id="start-mixed"' not in client.get(page).text
    client.post(reverse("own-mixed:end", args=["sentiment", round.number]))
    round.refresh_from_db()
    assert round.arm_shares is None


def test_one_click_gives_a_share_to_all_that_is_possible():
    round, owner = sentiment_round()
    round.task.is_official = True
    round.task.save()
    generator(round.task)
    assert start_mixed_round(round=round, actor=owner).arm_shares == ALL


def test_a_start_without_ready_adversaries_or_an_open_round_is_refused():
    round, owner = sentiment_round()
    with pytest.raises(Refused) as refusal:
        start_mixed_round(round=round, actor=owner)
    assert refusal.value.code == "none_ready"
    round.state = "paused"
    with pytest.raises(Refused) as refusal:
        start_mixed_round(round=round, actor=owner)
    assert refusal.value.code == "round_closed"


@pytest.mark.parametrize("role", [None, "reviewer", "viewer", "judge", "annotator"])
def test_only_editors_who_read_labels_get_in(client, role):
    round, _owner = mixed_round()
    person = UserFactory()
    if role:
        TaskMember.objects.create(task=round.task, user=person, role=role)
    client.force_login(person)
    for name, method in (("arms", "get"), ("arms", "post"), ("start", "post"), ("end", "post")):
        address = reverse(f"own-mixed:{name}", args=["sentiment", round.number])
        assert getattr(client, method)(address).status_code in (403, 404)
    round.refresh_from_db()
    assert round.arm_shares == ALL


# Results


def test_each_example_counts_in_one_arm(client, django_assert_num_queries):
    round, owner = mixed_round()
    for person in (UserFactory(), UserFactory()):
        write_texts(round, person, 6)
    Example.objects.filter(support__arm="drafts").update(
        support={"arm": "drafts", "edit_distance": 7}
    )
    caught = Example.objects.filter(support__arm="helped").first()
    Example.objects.filter(pk=caught.pk).update(outcome="fooled", goal="positive")
    # Written before the round was mixed, by a person's program, and withdrawn.
    columns = [{"support": None}, {"by_program": True, "support": None}]
    columns.append({"retracted_at": timezone.now()})
    for number, values in enumerate(columns, 50):
        write_once(Assignment.objects.first(), number, **values)
    run_to_its_end(Adversary.objects.get())
    with django_assert_num_queries(3):
        results = {result.arm: result for result in measure_arms(round)}
    assert {arm: result.texts for arm, result in results.items()} == {
        "people": 4, "helped": 4, "drafts": 4, "machines": None
    }  # fmt: skip
    assert {arm: result.tries for arm, result in results.items()} == {
        "people": 4, "helped": 4, "drafts": 4, "machines": 1
    }  # fmt: skip
    assert results["helped"].fooling_rate.value == 0.25
    assert results["helped"].fooling_rate.clusters == 2
    assert results["machines"].fooling_rate.value == 1
    assert [result.edit_distance for result in results.values()] == [None, None, 7, None]
    assert sum(result.share for result in results.values()) == 1
    client.force_login(owner)
    page = client.get(reverse("own-mixed:arms", args=["sentiment", round.number]))
    assert [row.tries for row in page.context["arms"]] == [4, 4, 4, 1]


def test_a_catch_counts_once_people_have_decided():
    round, owner = mixed_round()
    run_to_its_end(Adversary.objects.get())
    example = Example.objects.get()
    assert measure_arms(round)[3].catches == 0
    override_consensus(
        example=example, owner=owner, choice=Vote(label=example.goal), reason="It is clear."
    )
    assert measure_arms(round)[3].catches == 1


def test_the_board_has_all_four_arms():
    round, _owner = mixed_round()
    write_texts(round, UserFactory(), 6)
    # Helped texts without a suggestion stay in their arm, and drafts are no suggestions.
    Example.objects.filter(support__arm="drafts").update(
        support={"arm": "drafts", "suggestion": "edit"}
    )
    run_to_its_end(Adversary.objects.get())
    board = build_board(round.task)
    assert [(row.code, row.examples) for row in board] == [
        (str(Adversary.objects.get().pk), 1), ("people", 2), ("helped", 2), ("drafts", 2)
    ]  # fmt: skip
