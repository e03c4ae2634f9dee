"""Whole studies in memory: the command, and what few of them show.

`tests/simulations/test_studies.py` plays 2,000 of each plan of the docs.
"""

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from dynabench.studies.rules.plan import read_plan
from dynabench.studies.rules.simulation import simulate_studies

PLANS = Path(__file__).parents[3] / "docs/studies"
SMALL = "size: {people: 60, each: 2, contexts: 20, effect: 0.4, power: 0.8}"


@pytest.fixture
def plan_file(tmp_path):
    """The plan with suggestions, with few people."""
    text = (PLANS / "helped-writers.yaml").read_text()
    path = tmp_path / "plan.yaml"
    path.write_text(text[: text.index("size:")] + SMALL)
    return path


def run(*args, capsys):
    call_command("simulate_study", *map(str, args))
    return capsys.readouterr().out


def test_the_command_prints_one_object(plan_file, capsys):
    args = [plan_file, "--studies", 60, "--effect", 0, "--seed", 3]
    numbers = json.loads(run(*args, "--json", capsys=capsys))
    assert list(numbers) == ["studies", "false_alarms", "power", "coverage95"]
    assert numbers["studies"] == 60
    assert numbers["false_alarms"] < 0.2
    assert numbers["coverage95"] > 0.85
    assert numbers == json.loads(run(*args, "--json", capsys=capsys))
    assert f"coverage95: {numbers['coverage95']:.3f}" in run(*args, capsys=capsys)


def test_the_default_effect_is_the_plans(plan_file, capsys):
    args = [plan_file, "--studies", 30, "--json"]
    assert run(*args, capsys=capsys) == run(*args, "--effect", 0.4, capsys=capsys)


@pytest.mark.parametrize(
    "options", [("--studies", 0), ("--effect", 1.9), ("--effect", -1), ("--seed", -1)]
)
def test_impossible_options_are_refused(plan_file, options, capsys):
    with pytest.raises(CommandError, match=options[0]):
        run(plan_file, *options, capsys=capsys)


def test_a_file_that_is_no_plan_is_refused_with_its_line(tmp_path, capsys):
    with pytest.raises(CommandError):
        run(tmp_path / "absent.yaml", capsys=capsys)
    path = tmp_path / "plan.yaml"
    path.write_text((PLANS / "four-arms.yaml").read_text().replace("design: between", "design: x"))
    with pytest.raises(CommandError, match="line 19"):
        run(path, capsys=capsys)


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_large_effect_is_found_and_none_is_not(path):
    plan = read_plan(path.read_text())
    results = simulate_studies(plan, 30, plan.size.effect * 1.3, seed=1)
    assert results.power > 0.75
    assert results.false_alarms < 0.25
    assert results.coverage95 > 0.85


def test_blocks_by_context_compare_examples_of_one_context():
    text = (PLANS / "helped-writers.yaml").read_text()
    contexts_matter = text.replace("same_context: 0.05", "same_context: 0.6")
    plain, blocked = (
        simulate_studies(read_plan(contexts_matter.replace("[skill]", blocks)), 40, 0.25, seed=2)
        for blocks in ("[]", "[skill, context]")
    )
    assert blocked.power > plain.power
