"""Many people come to one study at the same time."""

from collections import Counter

import pytest

from dynabench.campaigns.ways.panels import Arrival
from dynabench.studies import services
from dynabench.studies.models import Study, StudyDraw
from tests.support.races import races
from tests.support.studies import plan_study

pytestmark = pytest.mark.django_db(transaction=True)


def test_draws_at_once_are_balanced_and_one_a_person(at_once):
    """Lock: the study, in `draw_person`."""
    study, owner, _ = plan_study()
    services.freeze_study(study=study, actor=owner)
    for number in races(5):
        people = [f"person-{number}-{person}" for person in range(10)]
        # Each person comes in two browsers.
        arms = at_once(
            lambda person: services.draw_person(study=study, arrival=Arrival(person)).name,
            people * 2,
        )
        assert arms[:10] == arms[10:]
        counts = Counter(StudyDraw.objects.values_list("arm__name", flat=True))
        assert counts == {"alone": 5 * (number + 1), "helped": 5 * (number + 1)}
    probabilities = StudyDraw.objects.order_by("pk").values_list("probability", flat=True)
    assert list(probabilities) == [0.5, 1.0] * (len(probabilities) // 2)


def test_two_owners_freeze_a_plan_once(at_once):
    """Lock: the study, in `freeze_study`."""
    study, owner, _ = plan_study()

    def freeze(_):
        try:
            services.freeze_study(study=study, actor=owner)
        except services.Refused:
            return "refused"
        return "frozen"

    assert sorted(at_once(freeze, range(4))) == ["frozen"] + ["refused"] * 3
    assert Study.objects.get().arms.count() == 2
