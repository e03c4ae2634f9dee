"""The plans that filled-in fields give: names, codes, and each design as it is offered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.studies.case_files import read_case_table, write_cases
from dynabench.studies.draft_forms import StudyDraftForm
from dynabench.studies.rules.builder import (
    MAX_STUDY_CHARS,
    OUTCOMES,
    TEMPLATES,
    list_initial_values,
    make_code,
    make_name,
)
from dynabench.studies.rules.plan import MEASURES, read_plan


def fill_in(template, **changes):
    values = list_initial_values(template)
    typed = {name: value for name, value in values.items() if value != ""} | changes
    code = make_code(values["title"], "0001")
    return StudyDraftForm(typed, values=values, code=code, design=template.design)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=lambda template: template.key)
def test_each_design_is_a_valid_plan_as_it_is_offered(template):
    form = fill_in(template)
    assert form.is_valid(), form.errors
    plan = read_plan(form.plan_text)
    assert (plan.design, len(plan.arms)) == (template.design, len(template.arms))
    assert plan.setup.campaign.pay_task == 150
    assert len(plan.hypotheses) == len(plan.arms) - 1


@given(st.text(max_size=60), st.integers(1, 9))
def test_any_words_give_a_name_and_a_code(words, number):
    name = make_name(words, f"arm_{number}")
    assert name.isascii()
    assert name[0].isalpha()
    assert name.replace("_", "").isalnum()
    code = make_code(words, "12ab")
    assert len(code) <= MAX_STUDY_CHARS
    assert not code.startswith("-")
    assert "--" not in code


def test_all_outcomes_are_measures_and_have_words():
    assert OUTCOMES.keys() <= MEASURES.keys()
    form = fill_in(
        TEMPLATES["with-or-without"], **{f"outcome-{measure}": "on" for measure in OUTCOMES}
    )
    assert form.is_valid(), form.errors
    plan = read_plan(form.plan_text)
    assert {outcome.measure for outcome in plan.outcomes} == set(OUTCOMES)
    # The question is asked before and after.
    assert len(plan.setup.campaign.questions["after"]) == 1


def test_currencies_have_their_own_decimals():
    form = fill_in(TEMPLATES["with-or-without"], currency="JPY", pay="200")
    assert form.is_valid(), form.errors
    assert read_plan(form.plan_text).setup.campaign.pay_task == 200


def test_a_table_becomes_cases_with_keys():
    table = b"case;answer\nIs it hot?;yes\n\nIs it cold?;no\nIs it hot?;no\n"
    summary = read_case_table(table, "cases.csv", ["yes", "no"])
    assert (summary.new_count, summary.error_count) == (2, 1) or summary.new_count == 3
    assert write_cases(summary).splitlines()[0] == (
        b'{"case": "Is it hot?", "metadata": {"key": {"answer": "yes"}}}'
    )
