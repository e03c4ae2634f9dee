"""Two workers draw the same examples at once, while the owner changes the rule and people judge."""

import pytest

from annotation.models import Example
from core.accounts.models import Annotator
from tasks.models import TargetModel
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.races import races
from tests.support.racing_votes import examples
from validation.consensus.vote_draws import DrawRule, JudgeAnswer
from validation.judging.draw_services import change_draw, store_draws
from validation.judging.judge_models import ask_judge_models
from validation.judging.queue_services import fill_queue
from validation.judging.services import open_session
from validation.models import JudgeLease, QueueItem, RoundPolicy, VoteDraw

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sampled():
    """A round of thirty examples with two judge models that disagree."""
    round = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory(round=round)
    author = Annotator.objects.create(pseudonym="w-author")
    examples(round, [author], 30)
    Example.objects.update(outcome="fooled")
    for name in ("first", "second"):
        TargetModel.objects.create(
            task=round.task,
            name=name,
            adapter="scripted",
            url="http://scripted.test",
            options={"label": "neutral"},
        )
    return round


def test_workers_at_once_draw_each_example_once(sampled, at_once):
    """Lock: the round's policy, in `store_draws` and `fill_queue`; the key of a draw."""
    owner, judge = UserFactory(), TargetModel.objects.get(name="first")
    for _ in races(20):
        VoteDraw.objects.all().delete()
        QueueItem.objects.all().delete()
        change_draw(round=sampled, owner=owner, rule=DrawRule(judge.pk))
        RoundPolicy.objects.update(filled_to=0)
        at_once(lambda _: ask_judge_models(), range(4))
        drawn = set(VoteDraw.objects.filter(is_drawn=True).values_list("pk", flat=True))
        assert VoteDraw.objects.count() == 30
        assert set(QueueItem.objects.values_list("pk", flat=True)) == drawn


def test_answers_that_differ_at_once_draw_once(sampled, at_once):
    """The first answer that is stored decides, and nobody is drawn twice."""
    judge, rows = TargetModel.objects.get(name="first"), list(Example.objects.all())
    rule = DrawRule(judge.pk)
    change_draw(round=sampled, owner=UserFactory(), rule=rule)
    scores = [0.0, 0.3, 0.5, 1.0]

    def store(score: float) -> None:
        answers = dict.fromkeys(rows, JudgeAnswer(score))
        store_draws(round=sampled, asked_rule=rule, answers=answers)

    at_once(store, scores)
    # All by one of the answers, because the whole batch is stored under the lock.
    assert VoteDraw.objects.values("judge_score").distinct().count() == 1
    assert VoteDraw.objects.count() == 30


def test_what_is_leased_while_a_rule_is_set_stays_in_the_queue(sampled, at_once):
    """Lock: queue items, in `change_draw`; those that somebody takes are skipped."""
    judge = TargetModel.objects.get(name="first")
    for _ in races(20):
        JudgeLease.objects.all().delete()
        VoteDraw.objects.all().delete()
        change_draw(round=sampled, owner=UserFactory(), rule=None)
        RoundPolicy.objects.update(filled_to=0)
        QueueItem.objects.all().delete()
        fill_queue(round=sampled)
        people, owner = [UserFactory() for _ in range(4)], UserFactory()

        def act(person, owner=owner) -> None:
            if person is None:
                change_draw(round=sampled, owner=owner, rule=DrawRule(judge.pk))
            else:
                open_session(validator=person.annotator, task=sampled.task)

        at_once(act, [*people, None])
        leased = set(JudgeLease.objects.values_list("example", flat=True))
        assert leased <= set(QueueItem.objects.values_list("pk", flat=True))
        ask_judge_models()
        assert not VoteDraw.objects.filter(pk__in=leased).exists()
