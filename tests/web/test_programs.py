"""What programs write and judge is kept apart from the numbers of people."""

import pytest
from django.utils import timezone

from annotation.attempts.services import begin_attempt
from annotation.context_picking.services import assign
from annotation.models import Example
from annotation.refusals import ProgramsRefused
from core.accounts.services import get_annotator
from leaderboard.people.activity import count_team_week, count_weeks
from leaderboard.people.badges import list_badges
from leaderboard.people.standings import list_standings
from tasks.models import Round, TaskMember
from tasks.questions import get_used_budget
from tests.support.factories import UserFactory
from tests.support.judging import write
from tests.support.task_reports import report
from validation.consensus.consensus import Policy
from validation.decisions.consensus_rows import derive_consensus
from validation.decisions.policy_preview import preview_policy
from validation.judging.queue import read_round_numbers
from validation.models import Validation
from validation.rewards.scores import compute_points
from validation.statistics.people import list_author_statistics, list_validator_statistics

pytestmark = pytest.mark.usefixtures("few_are_enough")


def judge(example, label, by_program=False):
    for _ in range(3):
        Validation.objects.create(
            example=example,
            validator=get_annotator(UserFactory()),
            author_id=example.annotator_id,
            label=label,
            by_program=by_program,
            created_at=timezone.now(),
        )
    derive_consensus(example, list(example.validations.all()))


@pytest.fixture
def mixed(nli, alice, bob):
    """Two examples by people and two by Bob's program; a vote of a program on a person's."""
    for number in range(4):
        author = bob if number > 1 else alice
        example = write(nli, author, number)
        example.by_program = author is bob
        example.save(update_fields=["by_program"])
        judge(example, "neutral")
    first = Example.objects.earliest("pk")
    Validation.objects.create(
        example=first,
        validator=get_annotator(UserFactory()),
        author_id=first.annotator_id,
        label="entailment",
        by_program=True,
    )
    return nli


@pytest.mark.parametrize("policy", [[], ["--policy", "n-equal:3"]], ids=["stored", "counted"])
def test_numbers_are_of_people_and_say_how_much_programs_did(mixed, policy):
    found = report("nli", *policy)["rounds"][0]
    assert (found["collected"], found["authors"], found["judged"]) == (2, 1, 2)
    assert (found["votes"], found["validators"]) == (6, 6)
    assert found["unanimous_share"]["value"] == 1
    assert (found["program_examples"], found["program_votes"]) == (2, 1)


def test_parts_tell_it_too(mixed):
    parts = report("nli", "--by", "label")["all"]["parts"]
    assert [(part["collected"], part["program_examples"]) for part in parts] == [(2, 2)]


def test_a_preview_rates_people_and_changes_all(mixed):
    found = preview_policy(mixed, Policy(rule="n-equal", needed=4))
    assert (found.examples, found.changed) == (4, 4)
    assert found.before["vmer"].n == 2


def test_budgets_are_used_up_by_people(mixed):
    Round.objects.update(max_collected=3, max_fooling=3, max_spent=1)
    assert get_used_budget(Round.objects.get()) == (2, 2, 12)
    numbers = read_round_numbers(mixed)[mixed.pk]
    assert (numbers["collected"], numbers["by_programs"]) == (2, 2)


def test_people_are_rated_and_thanked_for_what_they_did_themselves(mixed, alice, bob):
    author, machine = get_annotator(alice), get_annotator(bob)
    assert [one.annotator for one in list_author_statistics([mixed])] == [author]
    assert len(list_validator_statistics([mixed])) == 12
    type(author).objects.update(in_ranking=True)
    assert [one.pseudonym for one in list_standings([mixed.task])] == [author.pseudonym]
    assert list(count_weeks(machine)) == []
    assert not any(badge.is_earned for badge in list_badges(machine, [mixed.task], False))
    written = Example.objects.select_related("round__task", "consensus")
    assert compute_points(machine, list(written.filter(annotator=machine))) == {}
    assert count_team_week(mixed.task).passages == 1
    written.update(by_program=True)
    assert count_team_week(mixed.task).passages == 0


def test_a_task_may_be_for_people_only(nli, alice, bob):
    me = get_annotator(alice)
    nli.task.config_text += "\nprograms: {write: false}\n"
    nli.task.save(update_fields=["config_text"])
    assignment = assign(annotator=me, round=nli)
    with pytest.raises(ProgramsRefused, match="Only people write"):
        begin_attempt(annotator=me, assignment=assignment, key=None, inputs={}, by_program=True)


def test_owners_see_what_programs_did(mixed, as_alice, alice):
    TaskMember.objects.create(task=mixed.task, user=alice, role="owner")
    mark = '<span class="tag">by a program</span>'
    for example in Example.objects.all():
        example.consensus.state = "no_consensus"
        example.consensus.save()
    assert as_alice.get("/own/nli/review/").text.count(mark) == 2
    ours, theirs = Example.objects.earliest("pk"), Example.objects.latest("pk")
    assert as_alice.get(f"/own/nli/review/{ours.uuid}/").text.count(mark) == 1  # its fourth vote
    assert as_alice.get(f"/own/nli/review/{theirs.uuid}/").text.count(mark) == 1
    (card,) = as_alice.get("/own/nli/rounds/").context["cards"]
    assert card.numbers["by_programs"] == 2
    page = as_alice.get("/t/nli/data/").text
    assert 'data-by-programs="2 1"' in page


def test_ones_own_page_says_what_a_program_wrote(mixed, client, bob):
    client.force_login(bob)
    page = client.get("/me/")
    assert page.text.count("data-by-program") == 2
    assert (page.context["today"].tries, page.context["today"].judged) == (0, 0)
