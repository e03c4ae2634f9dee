"""Outcomes of a person: cells that confirmed errors fill, and harmful content that was shown."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from dynabench.studies.rules.coverage import TaskCell, compute_coverage, list_cells
from dynabench.studies.rules.exposure import count_exposure

NAMES = st.sampled_from(["news", "sport", "law", "food"])
CELLS = st.builds(TaskCell, NAMES, st.sampled_from(["", "negation", "irony"]))


def test_a_task_without_challenges_has_a_cell_for_each_topic():
    cells = list_cells(["news", "sport", "news"], [])
    assert cells == {TaskCell("news", ""), TaskCell("sport", "")}
    assert compute_coverage(cells, []) == 0
    assert compute_coverage([], [TaskCell("news", "")]) is None


def test_a_cell_that_the_task_no_longer_has_counts_nowhere():
    cells = list_cells(["news"], ["negation"])
    assert compute_coverage(cells, [TaskCell("sport", ""), TaskCell("news", "irony")]) == 0
    assert compute_coverage(cells, [TaskCell("news", "negation")] * 5) == 0.5


@given(st.sets(NAMES, min_size=1), st.sets(st.sampled_from(["negation", "irony"])), st.lists(CELLS))
def test_coverage_counts_cells_as_a_loop_does(topics, challenges, filled):
    cells = list_cells(topics, challenges)
    pairs = [TaskCell(*pair) for pair in product(sorted(topics), ["", *sorted(challenges)])]
    expected = sum(any(cell == other for other in filled) for cell in pairs) / len(pairs)
    assert compute_coverage(cells, filled) == expected
    # More errors never cover less.
    assert compute_coverage(cells, [*filled, pairs[0]]) >= expected


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)), st.integers(0, 5))
def test_a_warning_is_about_each_text(shown, harmful, answers):
    count = count_exposure(shown, harmful, answers, is_warned=False)
    assert count == len([text for text in shown if text in harmful]) + answers
    assert count_exposure(shown, harmful, answers, is_warned=True) == len(shown) + answers >= count
