"""False alarms, power and coverage of the plans in docs/studies, over 2,000 studies each."""

from pathlib import Path

import pytest

from dynabench.studies.rules.plan import read_plan
from dynabench.studies.rules.simulation import simulate_studies

STUDIES = 2000


@pytest.mark.parametrize(
    "path",
    sorted((Path(__file__).parents[2] / "docs/studies").glob("*.yaml")),
    ids=lambda path: path.stem,
)
def test_a_plan_keeps_what_it_promises(path):
    plan = read_plan(path.read_text())
    results = simulate_studies(plan, STUDIES, plan.size.effect, seed=1)
    print(f"{path.stem}: {results}")
    assert 0.03 <= results.false_alarms <= 0.06
    assert abs(results.power - plan.size.power) <= 0.03
    assert abs(results.coverage95 - 0.95) <= 0.01
