"""Describe in words what the chart of a training run shows, from its numbers."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

CLEAR_P = 0.05


def describe_training(tests: Sequence[Any]) -> str:
    """Return a sentence that says on how many tests the new model is clearly better or worse.

    If no test compares it with the old model, return a neutral title.
    """
    # Only pairs of answers to the same rows were tested.
    compared_tests = [test for test in tests if test["before"] and test["p"] is not None]
    if not compared_tests:
        return _("Results of the new model by test")
    better_count = worse_count = 0
    for test in compared_tests:
        if test["p"] < CLEAR_P:
            # The test shows that they differ, and the values in which direction.
            difference = test["after"]["value"] - test["before"]["value"]
            better_count += difference > 0
            worse_count += difference < 0
    values = {"better": better_count, "worse": worse_count, "tests": len(compared_tests)}
    if better_count and worse_count:
        return (
            _("After training, scores rose on %(better)d and fell on %(worse)d of %(tests)d tests")
            % values
        )
    if better_count:
        sentence = ngettext(
            "After training, scores rose on %(better)d of %(tests)d test",
            "After training, scores rose on %(better)d of %(tests)d tests",
            values["tests"],
        )
        return sentence % values
    if worse_count:
        sentence = ngettext(
            "After training, scores fell on %(worse)d of %(tests)d test",
            "After training, scores fell on %(worse)d of %(tests)d tests",
            values["tests"],
        )
        return sentence % values
    sentence = ngettext(
        "Training made no clear difference on %(tests)d test",
        "Training made no clear difference on %(tests)d tests",
        values["tests"],
    )
    return sentence % values
