"""The title of a training's chart: on how many tests the new model is clearly another."""

import pytest

from evaluation.training.findings import describe_training


def result(before, after, p):
    return {"before": before and {"value": before}, "after": {"value": after}, "p": p}


BETTER, WORSE, SAME = result(0.4, 0.6, 0.01), result(0.6, 0.4, 0.01), result(0.4, 0.6, 0.3)


@pytest.mark.parametrize(
    ("tests", "title"),
    [
        ([result(None, 0.5, None)], "Results of the new model by test"),
        ([BETTER, SAME], "After training, scores rose on 1 of 2 tests"),
        ([WORSE, SAME], "After training, scores fell on 1 of 2 tests"),
        ([BETTER, WORSE], "After training, scores rose on 1 and fell on 1 of 2 tests"),
        ([SAME, SAME], "Training made no clear difference on 2 tests"),
    ],
)
def test_what_a_training_changed(tests, title):
    assert describe_training(tests) == title
