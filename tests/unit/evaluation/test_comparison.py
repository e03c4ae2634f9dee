"""Old model against new: scores, what changed, and the text of the report."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.scoring.paired import (
    MAX_EXAMPLES,
    compare_models,
    compute_mcnemar_p,
    compute_mean_score,
    is_right,
)
from evaluation.task_shape import TaskShape
from evaluation.training.report_text import iterate_report_lines
from serving.spec import PAIR, SPAN
from tasks.config.verdicts import AskUser, ExactMatch, StringF1

LABELS = ("yes", "no")
PAIRS = TaskShape(PAIR, ("story", "claim"), "label", LABELS)
SPANS = TaskShape(SPAN, ("ask", "story"), "said", None)
SAME = ExactMatch(type="exact_match", fields=("label",))
F1 = StringF1(type="string_f1", field="said", threshold=0.4)


def pairs(*labels: str) -> list[dict[str, str]]:
    return [
        {"premise": f"p{n}", "hypothesis": f"h{n}", "label": label}
        for n, label in enumerate(labels)
    ]


def spans(*answers: str) -> list[dict[str, object]]:
    return [{"question": "?", "passage": a, "answer": a, "answer_start": 0} for a in answers]


def test_accuracy_has_wilsons_interval():
    found = compute_mean_score(PAIRS, pairs("yes", "no", "yes", "yes"), ["yes", "no", "no", "yes"])
    assert (found.value, found.n, found.method) == (0.75, 4, "wilson")
    assert found.low == pytest.approx(0.3006, abs=1e-4)
    assert found.high == pytest.approx(0.9544, abs=1e-4)


def test_token_f1_has_a_normal_interval():
    said = ["red fox", "grey wolf", "an owl", ""]
    found = compute_mean_score(SPANS, spans("red fox", "wolf", "owl", "cat"), said)
    assert found.value == pytest.approx((1 + 2 / 3 + 1 + 0) / 4)
    assert found.low == pytest.approx(found.value - 1.96 * 0.4082 / 2, abs=1e-3)
    assert (found.high, found.n) == (1.0, 4)


def test_nothing_has_no_score():
    with pytest.raises(ValueError, match="row"):
        compute_mean_score(PAIRS, [], [])


def test_right_is_what_the_verdict_lets_pass():
    assert is_right(SAME, PAIRS, "yes", "yes")
    assert not is_right(SAME, PAIRS, "yes", "no")
    assert is_right(F1, SPANS, "big red fox", "red fox")
    assert not is_right(F1, SPANS, "a big red brown old fox", "wolf")
    assert is_right(AskUser(type="ask_user"), SPANS, "The fox", "fox")
    assert not is_right(AskUser(type="ask_user"), SPANS, "red fox", "fox")


def test_what_changed_is_counted_and_shown():
    rows = pairs("yes", "no", "yes", "no")
    found = compare_models(SAME, PAIRS, rows, ["no", "yes", "yes", "no"], ["yes", "no", "no", "no"])
    assert (found["mended"], found["broken"]) == (2, 1)
    assert (found["before"]["value"], found["after"]["value"]) == (0.5, 0.75)
    assert found["p"] == 1.0
    assert found["examples"] == [
        {
            "inputs": {"story": f"p{n}", "claim": f"h{n}"},
            "expected": right,
            "before": wrong,
            "after": right,
        }
        for n, (right, wrong) in enumerate((("yes", "no"), ("no", "yes")))
    ]


def test_without_an_older_model_only_the_new_one_is_scored():
    found = compare_models(SAME, PAIRS, pairs("yes"), None, ["yes"])
    assert found["after"]["value"] == 1
    assert (found["before"], found["mended"], found["broken"], found["p"]) == (None,) * 4


def test_a_report_shows_some_of_many():
    rows = pairs(*["yes"] * 70)
    found = compare_models(SAME, PAIRS, rows, ["no"] * 70, ["yes"] * 70)
    assert (found["mended"], len(found["examples"])) == (70, MAX_EXAMPLES)


@pytest.mark.parametrize(
    ("mended", "broken", "p"),
    [(0, 0, 1.0), (5, 5, 1.0), (10, 0, 2 / 1024), (0, 10, 2 / 1024), (8, 2, 112 / 1024)],
)
def test_mcnemar_by_hand(mended, broken, p):
    assert compute_mcnemar_p(mended, broken) == pytest.approx(p)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_a_chance_and_symmetric(mended, broken):
    p = compute_mcnemar_p(mended, broken)
    assert 0 < p <= 1
    assert p == compute_mcnemar_p(broken, mended)
    if mended > broken:
        assert compute_mcnemar_p(mended + 1, broken) < p or p == 1


def report(before: list[str] | None, missing: str, labels: tuple[str, ...] | None = LABELS):
    tests = compare_models(SAME, PAIRS, pairs("yes", "no"), before, ["yes", "no"])
    return {
        "task": "nli",
        "kind": PAIR,
        "labels": labels,
        "seed": 0,
        "base": "a base",
        "folder": "a folder",
        "old": "tiny" if before else None,
        "old_missing": missing,
        "sources": [
            {"name": "seed", "dataset": None, "weight": None, "train": 0, "dev": 0, "test": 2,
             "left_out": 0},
            {"name": "round1", "dataset": "nli-round1-v1", "weight": 2, "train": 9, "dev": 3,
             "test": 4, "left_out": 5},
        ],
        "training": {"curve": [{"loss": 0.5, "accuracy": 0.25}], "best_epoch": 1},
        "tests": [{"name": "seed", **tests}],
    }  # fmt: skip


def test_the_report_as_text():
    text = "\n".join(iterate_report_lines(report(["no", "no"], "")))
    assert "  seed: 0 train, 0 dev, 2 test (" in text
    assert "  nli-round1-v1: 9 train, 3 dev, 4 test, 5 left out (weight 2)" in text
    assert "  epoch 1: loss 0.500, accuracy 0.250  (kept)" in text
    assert "accuracy on the tests, before (tiny) and after:" in text
    assert "  seed: 0.500 [0.095, 0.905] n=2 → 1.000 [0.342, 1.000] n=2; 1 mended, 0 broken" in text
    assert "  mended: p0 | h0 → yes (was no)" in text


def test_the_report_says_why_there_is_no_before():
    text = "\n".join(iterate_report_lines(report(None, "tiny did not answer: down", None)))
    assert re.search(r"^token F1 .*tiny did not answer: down", text, re.M)
    assert "  seed: unknown → 1.000" in text
    assert "mended" not in text
