"""Workers that estimate the items of one set at the same instant."""

import pytest

from evaluation.models import EvaluationSetVersion, ItemFit, ItemProperty
from evaluation.runs.item_services import refresh_item_properties
from tests.support.compared_models import rows_of
from tests.support.evaluations import set_version
from tests.support.factories import TaskFactory
from tests.support.set_items import SIZE, answer_by_ability

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_workers_store_each_item_once(at_once):
    version = set_version(TaskFactory(code="nli"), rows=rows_of(SIZE))
    answer_by_ability(version, 20)

    def refresh(_number):
        return refresh_item_properties(EvaluationSetVersion.objects.get(pk=version.pk))

    assert any(at_once(refresh, range(3)))
    assert ItemFit.objects.count() == 1
    assert ItemProperty.objects.count() == SIZE
