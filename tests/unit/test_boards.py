"""The boards of many models: who is tested on what nobody trained on, and what is asked of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.boards.plan import list_entries, list_questions
from bench.boards.plots import FIGURES, PICTURES, draw_plots
from bench.boards.rows import TASKS, build_row, list_clusters, sample_rows, separate_stages


def line(uid: str, text: str = "", **told: Any) -> dict[str, Any]:
    about = {name: told.pop(name) for name in ("group", "contrast_uid") if name in told}
    return {
        "uid": uid, "context": {}, "input": {"text": text or uid}, "author": None,
        "author_label": "hate", "validations": [], "metadata": about, **told,
    }  # fmt: skip


def test_a_label_is_what_three_of_five_people_chose_else_what_the_source_says():
    votes = [{"label": label} for label in ("a", "b", "a", "c", "a")]
    assert build_row(line("1", validations=votes))["label"] == "a"
    assert build_row(line("1", validations=votes[1:] + votes[1:2]))["label"] is None
    assert build_row(line("1", validations=votes[:2]))["label"] == "hate"


@pytest.mark.parametrize(
    ("train", "test"),
    [
        (line("1", "Same  TEXT"), line("2", "same text")),
        (line("1", contrast_uid="2"), line("2", contrast_uid="1")),
        (line("1", group="g"), line("2", group="g")),
        (line("1", context={"prompt": "p"}), line("2", context={"prompt": "p"})),
    ],
    ids=["text", "pair", "group", "prompt"],
)
def test_what_is_close_to_a_test_is_not_trained_on(train, test):
    far = build_row(line("3"))
    stages, dropped = separate_stages(
        {"round 1": [build_row(train), far]}, {"any": [build_row(test)]}, most=9
    )
    assert stages == {"round 1": [far]}
    assert dropped == {"round 1": 1}


@given(st.lists(st.integers(1, 4), min_size=2, max_size=30), st.integers(1, 40))
def test_a_sample_has_whole_groups_and_never_fewer_rows(sizes, size):
    rows = [
        build_row(line(f"{group}-{n}", group=f"g{group}"))
        for group, count in enumerate(sizes)
        for n in range(count)
    ]
    taken = sample_rows(rows, size)
    groups = {row["group"] for row in taken}
    assert taken == [row for row in rows if row["group"] in groups]
    largest = max(sizes)
    assert min(size, len(rows) - largest) <= len(taken) <= max(size - 1 + largest, size)
    assert sample_rows(rows[::-1], size) == taken[::-1]
    assert (list_clusters(rows) is None) == (largest == 1)


@pytest.mark.parametrize("stages", [("r1", "r2"), ("r1", "r2", "r3")])
def test_twelve_models_of_four_kinds_and_every_question_is_about_two_of_them(stages):
    models = list_entries(stages)
    names = {one.name for one in models}
    assert len(names) == len(models) >= 12
    assert len({one.kind for one in models} - {"majority"}) >= 4
    questions = list_questions(stages, [f"set {name}" for name in stages], ["a", "b"])
    assert {one.question for one in questions} >= {"next", "own", "forgotten"}
    assert {name for one in questions for name in (one.before, one.after)} <= names
    for one in questions:  # no model is tested on the next round after training on it
        if one.question == "next":
            after = next(each for each in models if each.name == one.after)
            learned = {f"set {name}" for step in after.steps for name in step}
            assert not learned & {*one.sets}


def test_the_plots_say_what_was_measured():
    tasks = json.loads(FIGURES.read_text())
    assert [*tasks] == [*TASKS]
    for name, plot in draw_plots(tasks).items():
        assert (PICTURES / name).read_text() == plot
    for of in tasks.values():
        names = {one["model"] for one in of["models"]}
        assert len(names) >= 12
        assert len({one["kind"] for one in of["models"]} - {"majority"}) >= 4
        for one in of["models"]:
            assert 1 <= one["first"] <= int(one["rank"].rstrip("=")) <= one["last"] <= len(names)


@pytest.mark.data
@pytest.mark.parametrize("task", TASKS)
def test_real_rows_are_apart(task):
    rows = TASKS[task](300, 385)
    tested = {key for some in rows.tests.values() for row in some for key in row["keys"]}
    trained = {key for some in rows.stages.values() for row in some for key in row["keys"]}
    assert not tested & trained
    assert {*rows.like} <= {*rows.tests}
    assert len(rows.like) == len(rows.stages)
    assert all(len(rows.tests[name]) >= 385 for name in rows.tests if name not in rows.long)
