"""Jobs that are asked for again at the same instant."""

import pytest
from django_q.models import OrmQ

from core.errors import Refused
from evaluation.judges.custom_metrics.services import rerun_metric
from evaluation.judges.llm_judges.services import rerun_judge
from evaluation.models import CustomMetric, LlmJudge
from tests.support.factories import TaskFactory
from tests.support.judged_answers import chat_target

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = range(5)


def test_a_job_is_queued_again_once_from_many_tabs(at_once):
    task = TaskFactory(code="nli")
    asked = {"target": chat_target(task, ""), "asked_with": {}, "prompt": "", "most_calls": 1}
    judge = LlmJudge.objects.create(task=task, name="j", **asked)
    metric = CustomMetric.objects.create(task=task, name="m", number=1)

    def try_to(again):
        try:
            again()
        except Refused:
            return False
        return True

    for _ in REPEATS:
        LlmJudge.objects.update(state="failed")
        CustomMetric.objects.update(state="failed")
        OrmQ.objects.all().delete()
        tabs = [lambda: rerun_judge(judge=judge, actor=None)] * 4
        tabs += [lambda: rerun_metric(metric=metric, actor=None)] * 4
        queued = at_once(try_to, tabs)
        assert (queued[:4].count(True), queued[4:].count(True)) == (1, 1)
        assert OrmQ.objects.count() == 2
