"""Which examples people judge in a round with a judge model: drawn once, kept, and followed."""

import csv
from datetime import timedelta
from io import StringIO

import pytest
from django.conf import settings
from django.utils import timezone

from annotation.models import Example
from core.accounts.services import get_annotator
from tasks.models import RoundTarget, TargetModel, TaskMember
from tests.support.factories import ContextFactory, RoundFactory, UserFactory
from tests.support.gold_items import voted
from tests.support.judging import write
from tests.support.task_reports import report
from validation.consensus.consensus import Policy, Vote
from validation.consensus.vote_draws import DrawRule, JudgeAnswer, draw_for_people
from validation.decisions.policy_preview import preview_policy
from validation.decisions.services import RoundReleased, derive_round, override_consensus
from validation.judging import draw_services
from validation.judging.draw_services import DrawRefused, change_draw, store_draws
from validation.judging.judge_models import JUDGE_WAIT, ask_judge_models
from validation.judging.queue import (
    AUTHOR_TIME,
    count_unqueued_examples,
    count_waiting_examples,
)
from validation.judging.queue_services import fill_queue, queue_all_examples
from validation.judging.services import open_session
from validation.models import Consensus, JudgeLease, QueueItem, RoundPolicy, VoteDraw
from validation.rates.rates import Undefined
from validation.statistics import vote_planning

EXAMPLES = 40
SURE = {"label": "neutral", "prob": {"neutral": 1.0}}
UNSURE = {"contains": "unclear", "label": "neutral", "prob": {"neutral": 0.5, "entailment": 0.5}}


def make_judge(round, name="judge", **options):
    return TargetModel.objects.create(
        task=round.task,
        name=name,
        adapter="scripted",
        url="http://scripted.test",
        options=options or {**SURE, "rules": [UNSURE]},
    )


@pytest.fixture
def judged(nli, alice, bob):
    """Forty possible catches of Bob, every fourth of which the judge finds even; Alice edits."""
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    for number in range(EXAMPLES):
        word = "unclear" if number % 4 == 0 else "clear"
        text = {"hypothesis": f"An {word} statement {number}.", "label": "neutral"}
        write(nli, bob, number, **text)
    return nli


def draw(round, owner, **options):
    change_draw(round=round, owner=owner, rule=DrawRule(make_judge(round, **options).pk))
    return ask_judge_models()


def queued(round):
    return set(QueueItem.objects.filter(round=round).values_list("pk", flat=True))


def test_people_are_asked_about_the_drawn_alone(judged, alice):
    assert draw(judged, alice) == EXAMPLES
    draws = VoteDraw.objects.select_related("example")
    assert len(draws) == EXAMPLES
    for row in draws:
        is_unclear = "unclear" in row.example.inputs["hypothesis"]
        assert (row.chance, row.reason) == ((1, "unsure") if is_unclear else (0.1, "sure"))
        again = draw_for_people(
            row.example.uuid, JudgeAnswer(row.judge_score), 0.1, settings.SECRET_KEY
        )
        assert again.is_drawn == row.is_drawn
    drawn = set(draws.filter(is_drawn=True).values_list("pk", flat=True))
    assert queued(judged) == drawn
    assert drawn >= set(draws.filter(chance=1).values_list("pk", flat=True))
    assert len(drawn) < EXAMPLES


def test_what_is_not_drawn_waits_for_nobody_and_is_never_confirmed(judged, alice):
    draw(judged, alice)
    assert count_waiting_examples([judged])[judged.pk] == len(queued(judged))
    assert not Consensus.objects.exists()
    QueueItem.objects.update(still_needed=0)
    assert count_waiting_examples([judged])[judged.pk] == 0


def test_nothing_is_offered_before_the_draw(judged, alice):
    change_draw(round=judged, owner=alice, rule=DrawRule(make_judge(judged).pk))
    judge = UserFactory()
    assert fill_queue(round=judged) == 0
    assert open_session(validator=judge.annotator, task=judged.task).lease is None
    assert not count_unqueued_examples(judge.annotator, [judged.task_id])
    # The round can't be over yet, because some of them will be judged.
    assert count_waiting_examples([judged])[judged.pk] == EXAMPLES


def test_a_draw_stays_whatever_changes_afterwards(judged, alice, bob):
    draw(judged, alice)
    before = list(VoteDraw.objects.order_by("pk").values())
    judge = TargetModel.objects.get(name="judge")
    # The judge changes its mind, the chance changes, and at last the rule goes.
    TargetModel.objects.update(options={"label": "entailment"})
    change_draw(round=judged, owner=alice, rule=DrawRule(judge.pk, min_chance=1))
    assert ask_judge_models() == 0
    change_draw(round=judged, owner=alice, rule=None)
    later = write(judged, bob, EXAMPLES)
    fill_queue(round=judged)
    assert list(VoteDraw.objects.order_by("pk").values()) == before
    drawn = {row["example_id"] for row in before if row["is_drawn"]}
    assert queued(judged) == {*drawn, later.pk}
    # An import may send the queue back to the beginning.
    RoundPolicy.objects.update(filled_to=0)
    fill_queue(round=judged)
    assert queued(judged) == {*drawn, later.pk}


def test_what_nobody_has_begun_is_drawn_too(judged, alice):
    fill_queue(round=judged)
    begun = open_session(validator=UserFactory().annotator, task=judged.task).lease.example_id
    assert draw(judged, alice) == EXAMPLES - 1
    assert begun in queued(judged)
    assert not VoteDraw.objects.filter(pk=begun).exists()
    assert len(queued(judged)) < EXAMPLES


def test_an_example_that_the_judge_cannot_answer_is_judged_for_certain(judged, alice):
    rules = [{"contains": "unclear", "fail": "declined"}]
    assert draw(judged, alice, name="shy", **SURE, rules=rules) == EXAMPLES
    shy = VoteDraw.objects.filter(reason="no_answer")
    assert shy.count() == EXAMPLES // 4
    assert {(row.judge_score, row.chance, row.is_drawn) for row in shy} == {(None, 1, True)}


def test_no_judge_model_is_asked_while_the_author_may_still_decide(judged, alice):
    first = Example.objects.order_by("pk").first()
    Example.objects.filter(pk=first.pk).update(outcome="undecided")
    change_draw(round=judged, owner=alice, rule=DrawRule(make_judge(judged).pk, min_chance=1))
    assert ask_judge_models() == EXAMPLES - 1
    # It holds up nobody, though it came first.
    assert len(queued(judged)) == EXAMPLES - 1
    assert fill_queue(round=judged) == 0
    assert ask_judge_models() == 0
    assert RoundPolicy.objects.get().filled_to < first.pk
    Example.objects.filter(pk=first.pk).update(created_at=timezone.now() - AUTHOR_TIME)
    assert ask_judge_models() == 1
    assert first.pk in queued(judged)
    assert RoundPolicy.objects.get().filled_to > first.pk


def test_what_an_author_decided_is_drawn_by_its_verdict(judged, alice):
    Example.objects.update(outcome="undecided")
    assert draw(judged, alice) == 0
    fooled = Example.objects.order_by("pk").last()
    Example.objects.filter(pk=fooled.pk).update(outcome="fooled")
    assert ask_judge_models() == 1
    assert VoteDraw.objects.get().pk == fooled.pk


def test_a_judge_that_is_down_is_waited_for_and_then_done_without(judged, alice):
    assert draw(judged, alice, name="away", fail="down") == 0
    assert not queued(judged)
    policy_row = RoundPolicy.objects.get()
    assert policy_row.judge_down_since is not None
    RoundPolicy.objects.update(judge_down_since=timezone.now() - JUDGE_WAIT - timedelta(seconds=1))
    assert ask_judge_models() == EXAMPLES
    assert len(queued(judged)) == EXAMPLES
    assert set(VoteDraw.objects.values_list("reason", flat=True)) == {"no_answer"}


def test_a_judge_that_answers_again_is_no_longer_down(judged, alice):
    draw(judged, alice, name="away", fail="busy")
    TargetModel.objects.update(options=SURE)
    assert ask_judge_models() == EXAMPLES
    assert RoundPolicy.objects.get().judge_down_since is None


def test_without_its_judge_people_judge_all(judged, alice):
    change_draw(round=judged, owner=alice, rule=DrawRule(make_judge(judged).pk))
    TargetModel.objects.all().delete()
    assert ask_judge_models() == EXAMPLES
    assert len(queued(judged)) == EXAMPLES


def test_an_answer_that_comes_after_the_rule_has_changed_draws_nothing(judged, alice):
    judge = make_judge(judged)
    other = make_judge(judged, "other")
    change_draw(round=judged, owner=alice, rule=DrawRule(other.pk))
    answers = dict.fromkeys(Example.objects.all(), JudgeAnswer(1.0))
    store_draws(round=judged, asked_rule=DrawRule(judge.pk), answers=answers)
    instructed = DrawRule(other.pk, prompt="Judge it.")
    store_draws(round=judged, asked_rule=instructed, answers=answers)
    change_draw(round=judged, owner=alice, rule=None)
    store_draws(round=judged, asked_rule=DrawRule(other.pk), answers=answers)
    assert not VoteDraw.objects.exists()


def test_what_a_draw_cannot_be_for_is_refused(judged, alice, qa):
    judge = make_judge(judged)
    RoundTarget.objects.create(round=judged, target=judge)
    with pytest.raises(DrawRefused):  # the model that authors try to fool
        change_draw(round=judged, owner=alice, rule=DrawRule(judge.pk))
    with pytest.raises(DrawRefused):  # free answers
        change_draw(round=qa, owner=alice, rule=DrawRule(make_judge(qa).pk))
    with pytest.raises(DrawRefused):  # another task's model
        change_draw(round=judged, owner=alice, rule=DrawRule(make_judge(qa, "far").pk))
    with pytest.raises(ValueError, match="above 0"):
        DrawRule(judge.pk, 0)
    judged.state = "released"
    judged.save()
    with pytest.raises(RoundReleased):
        change_draw(round=judged, owner=alice, rule=None)
    assert not RoundPolicy.objects.filter(draw__isnull=False).exists()


def test_examples_that_fooled_no_model_are_drawn_within_their_share(judged, alice, bob):
    for number in range(EXAMPLES, EXAMPLES + 20):
        write(judged, bob, number, outcome="not_fooled")
    draw(judged, alice)
    share = VoteDraw.objects.filter(example__outcome="not_fooled").count()
    assert 0 < share < 20  # one in five, by the task's configuration
    assert count_waiting_examples([judged])[judged.pk] == len(queued(judged))


def test_items_are_taken_out_in_steps(judged, alice, monkeypatch):
    monkeypatch.setattr(draw_services, "CHUNK_ITEMS", 7)
    fill_queue(round=judged)
    assert len(queued(judged)) == EXAMPLES
    change_draw(round=judged, owner=alice, rule=DrawRule(make_judge(judged).pk))
    assert not queued(judged)
    assert not JudgeLease.objects.exists()


URL = "/own/nli/rounds/1/sample/"
API = "/api/v1/tasks/nli/rounds/1/vote-draw/"


def test_editors_choose_a_judge_on_the_page(judged, as_alice):
    judge = make_judge(judged)
    assert as_alice.get(URL).status_code == 200
    values = {"judge": "judge", "min_chance": "0.2"}
    assert as_alice.post(URL, values).status_code == 302
    assert RoundPolicy.objects.get().draw_rule == DrawRule(judge.pk, 0.2)
    ask_judge_models()
    page = as_alice.get(URL)
    state = page.context["state"]
    assert (state.judge_name, state.drawn + state.left_out) == ("judge", EXAMPLES)
    assert state.is_sampled
    as_alice.post(URL, {"judge": "", "min_chance": ""})
    assert RoundPolicy.objects.get().draw_rule is None


@pytest.mark.parametrize("chance", ["0", "-1", "1.1", "much", "nan"])
def test_a_chance_that_cannot_be_is_refused(judged, as_alice, chance):
    make_judge(judged)
    response = as_alice.post(URL, {"judge": "judge", "min_chance": chance})
    assert (response.status_code, list(response.context["form"].errors)) == (422, ["min_chance"])
    assert not RoundPolicy.objects.filter(draw__isnull=False).exists()


def test_the_api_does_what_the_page_does(judged, as_alice):
    make_judge(judged)
    sent = as_alice.put(API, {"judge": "judge"}, content_type="application/json")
    assert (sent.status_code, sent.json()["judge"], sent.json()["min_chance"]) == (
        200,
        "judge",
        0.1,
    )
    ask_judge_models()
    found = as_alice.get(API).json()
    assert found["drawn"] == len(queued(judged))
    assert found["drawn"] + found["left_out"] == EXAMPLES
    for values in ({"judge": "none"}, {"judge": "judge", "min_chance": 0}):
        assert as_alice.put(API, values, content_type="application/json").status_code == 422
    sent = as_alice.put(API, {"judge": None}, content_type="application/json")
    assert (sent.json()["judge"], sent.json()["min_chance"]) == (None, None)
    assert sent.json()["left_out"] == found["left_out"]


def test_the_page_and_the_api_plan_votes(judged, as_alice):
    make_judge(judged)
    plan = as_alice.get("/api/v1/tasks/nli/rounds/1/vote-plan/?width=0.5").json()
    assert plan["with_judge"] < plan["without_judge"] <= EXAMPLES
    assert plan["measured_on"] == 0
    page = as_alice.get(f"{URL}?width=0.5").context["planned"]
    assert page.plan.with_judge == plan["with_judge"]
    assert as_alice.get(f"{URL}?width=0").status_code == 422
    assert as_alice.get("/api/v1/tasks/nli/rounds/1/vote-plan/").status_code == 422


def vote_on_all_drawn(round, people):
    """Three people say the same: of three statements two are right."""
    for example in Example.objects.filter(round=round, queue_item__isnull=False):
        number = int(example.inputs["hypothesis"].rstrip(".").split()[-1])
        label = "neutral" if number % 3 else "entailment"
        voted(example, *[Vote(label)] * 3, by=people)
    derive_round(round=round)


@pytest.fixture
def sampled(judged, alice):
    """Examples of four authors, half of which were drawn and judged."""
    authors = [get_annotator(UserFactory()) for _ in range(4)]
    for number, example in enumerate(Example.objects.order_by("pk")):
        Example.objects.filter(pk=example.pk).update(annotator=authors[number % 4])
    for number in range(EXAMPLES, EXAMPLES + 10):
        write(judged, UserFactory(), number, outcome="not_fooled")
    change_draw(round=judged, owner=alice, rule=DrawRule(make_judge(judged).pk, min_chance=0.4))
    ask_judge_models()
    vote_on_all_drawn(judged, [UserFactory() for _ in range(3)])
    return judged


def test_the_catch_rate_is_that_of_all_examples(sampled):
    numbers = report("nli")["rounds"][0]
    draws = VoteDraw.objects.filter(example__outcome="fooled")
    # By hand: the judge says the same of all that were drawn alike, so its line adds little.
    rows = draws.values_list("is_drawn", "chance", "example__consensus__is_validated_error")
    weighted = sum(bool(is_catch) / chance for is_drawn, chance, is_catch in rows if is_drawn)
    rate = numbers["vmer"]
    assert rate["method"] == "judge-model"
    assert rate["low"] < 2 / 3 * EXAMPLES / (EXAMPLES + 10) < rate["high"]
    assert abs(rate["value"] - weighted / (EXAMPLES + 10)) < 0.1
    judged_count = Consensus.objects.filter(votes__gt=0).count()
    assert (rate["n"], numbers["sample_drawn"]) == (judged_count, judged_count)
    not_to_judge = Example.objects.filter(vote_draw__isnull=True).count()
    assert numbers["sample_left_out"] == EXAMPLES + 10 - judged_count - not_to_judge
    # Nothing says more than the sample does.
    assert numbers["fleiss_kappa"] is numbers["krippendorff_alpha"] is None
    assert numbers["unanimous_share"]["value"] == numbers["majority_share"]["value"] == 1


def test_an_owners_decision_on_what_was_not_drawn_is_no_vote_of_the_sample(sampled, alice):
    before = report("nli")["rounds"][0]
    left_out = Example.objects.filter(vote_draw__is_drawn=False)
    for example in left_out:
        override_consensus(example=example, owner=alice, choice=Vote("neutral"))
    after = report("nli")["rounds"][0]
    assert after["vmer"] == before["vmer"]
    assert after["verified"] == before["verified"] + left_out.count()


def test_each_place_says_that_a_judge_model_helped(sampled, as_alice):
    rate = report("nli")["rounds"][0]["vmer"]
    api = as_alice.get("/api/v1/tasks/nli/rounds/1/statistics/").json()
    assert api["rounds"][0]["vmer"] == api["all"]["vmer"] == rate
    assert api["all"]["sample_left_out"] > 0
    (line,) = csv.DictReader(StringIO(as_alice.get("/t/nli/numbers.csv").text))
    assert (line["vmer_method"], int(line["vmer_n"])) == ("judge-model", rate["n"])
    assert int(line["sample_left_out"]) == api["all"]["sample_left_out"]
    page = as_alice.get("/t/nli/data/").text
    assert f"{rate['n']} judged examples" in page
    parts = report("nli", "--by", "label")["all"]["parts"]
    assert [part["vmer"]["method"] for part in parts] == ["judge-model"]


def test_another_policy_claims_no_rate_from_the_sample(sampled):
    assert report("nli", "--policy", "strict")["rounds"][0]["vmer"] is None
    assert isinstance(preview_policy(sampled, Policy("strict", of=3)).after["vmer"], Undefined)


def test_rounds_without_a_judge_model_stay_as_they_are(sampled, bob):
    other = RoundFactory(task=sampled.task, number=2, state="closed")
    ContextFactory(round=other)
    people = [UserFactory() for _ in range(3)]
    for number in range(6):
        voted(write(other, bob, number), *[Vote("neutral")] * 3, by=people)
    derive_round(round=other)
    first, second = report("nli")["rounds"]
    assert second["vmer"]["method"] == "korn-graubard"
    assert "sample_drawn" not in second
    both = report("nli")["all"]
    assert both["vmer"]["n"] == first["vmer"]["n"] + 6
    assert both["vmer"]["value"] > first["vmer"]["value"]


def test_the_plan_measures_the_judge_on_the_tasks_examples(sampled):
    examples = VoteDraw.objects.filter(is_drawn=True).count()
    assert vote_planning.measure_judge_correlation(sampled.task).example_count == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vote_planning, "MIN_MEASURED_EXAMPLES", 10)
        found = vote_planning.measure_judge_correlation(sampled.task)
    assert 10 < found.example_count <= examples
    assert -1 <= found.value <= 1


def test_reviewers_see_what_was_not_drawn(judged, as_alice, alice):
    draw(judged, alice)
    for is_drawn in (True, False):
        example = Example.objects.filter(vote_draw__is_drawn=is_drawn).first()
        page = as_alice.get(f"/own/nli/review/{example.uuid}/")
        assert ('id="not-drawn"' in page.text) != is_drawn


def test_an_import_to_be_judged_is_drawn_like_any_other(judged, alice):
    change_draw(round=judged, owner=alice, rule=DrawRule(make_judge(judged).pk))
    first, last = Example.objects.earliest("pk").pk, Example.objects.latest("pk").pk
    queue_all_examples(round=judged, first_id=first, last_id=last)
    assert not queued(judged)
    assert ask_judge_models() == EXAMPLES
