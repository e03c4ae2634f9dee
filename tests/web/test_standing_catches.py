"""My work tells authors which of their catches still fool the next model, from stored reports."""

from uuid import uuid4

import pytest

from annotation.models import Example
from dynabench.catches.standing import MIN_CATCHES, find_standing_catches
from evaluation.models import TrainingRun
from tasks.models import Round, TaskMember
from tests.support.factories import RoundFactory, scripted_target
from tests.support.judging import write


@pytest.fixture
def mine(nli, alice):
    return [write(nli, alice, number) for number in range(2)]


@pytest.fixture
def run(nli, mine, bob):
    """A training on round 1, whose model is that of round 2, which is open."""
    nli.state = "released"
    nli.save()
    target = scripted_target(RoundFactory(task=nli.task, number=2, state="open"))
    others = [str(uuid4()) for _ in range(2)]
    counts = {"catches": MIN_CATCHES, "standing": [str(mine[0].uuid), *others]}
    return TrainingRun.objects.create(
        task=nli.task,
        state="done",
        target=target,
        options={},
        report={"standing": {"round0": {"catches": 0, "standing": []}, "round1": counts}},
    )


def find(mine):
    me = mine[0].annotator
    return find_standing_catches(me, [mine[0].round.task])


def test_an_author_is_told_of_theirs(as_alice, mine, run, django_assert_num_queries):
    with django_assert_num_queries(3):
        (told,) = find(mine)
    assert (told.round, told.earlier_round, told.share, told.own_count) == (2, 1, 0.4, 1)
    assert 'data-standing="1"' in as_alice.get("/me/").text


def test_an_author_without_one_is_told_nothing(as_alice, mine, run):
    Example.objects.filter(pk=mine[0].pk).update(retracted_at="2026-11-01T00:00:00Z")
    assert find(mine) == []
    assert "data-standing" not in as_alice.get("/me/").text


@pytest.mark.parametrize("case", ["left", "member"])
def test_a_task_that_went_private_tells_its_members_only(as_alice, mine, run, alice, case):
    task = mine[0].round.task
    task.is_visible = False
    task.save()
    if case == "member":
        TaskMember.objects.create(user=alice, task=task, role="writer")
    assert len(find(mine)) == (case == "member")
    assert ("data-standing" in as_alice.get("/me/").text) is (case == "member")


@pytest.mark.parametrize("case", ["few", "closed", "waiting", "older", "sensitive"])
def test_when_nothing_is_told(mine, run, case):
    match case:
        case "few":
            run.report["standing"]["round1"]["catches"] = MIN_CATCHES - 1
            run.save()
        case "closed":
            Round.objects.filter(number=2).update(state="closed")
        case "waiting":
            TrainingRun.objects.update(state="failed")
        case "older":
            TrainingRun.objects.update(report={"tests": []})
        case "sensitive":
            warning = "content_warning: {text: It hurts.}"
            task = mine[0].round.task
            task.config_text = task.config_text.replace("content_warning: null", warning)
            task.save()
    assert find(mine) == []
