"""What a task lacks before its first round opens."""

from dataclasses import replace

import pytest

from tasks.config.loading import load_config
from tasks.config.schema import Examples
from tasks.making.templates import load_templates
from tasks.rounds.launch import Gap, Preparation, find_gaps

READY = Preparation(context_count=1, target_count=1, judge_count=None)
NLI = load_templates()["nli"].config  # at least 3 of 5 votes
TALK = load_templates()["secret"].config
JUDGING = replace(load_templates()["judging"].config, examples=NLI.examples)


@pytest.mark.parametrize(
    ("config", "prepared", "expected"),
    [
        (NLI, READY, []),
        (NLI, replace(READY, context_count=0), [Gap("contexts", True)]),
        (NLI, replace(READY, target_count=0), [Gap("target", False)]),
        (NLI, replace(READY, target_count=3), []),
        (TALK, READY, []),
        (JUDGING, replace(READY, target_count=0), []),
        (JUDGING, Preparation(context_count=0, target_count=0, judge_count=2), [Gap("rows", True)]),
        (TALK, replace(READY, target_count=0), [Gap("one_target", True)]),
        (TALK, replace(READY, target_count=2), [Gap("one_target", True)]),
        (NLI, replace(READY, judge_count=3), [Gap("judges", False)]),
        (NLI, replace(READY, judge_count=4), []),
        (replace(NLI, instructions=" \n"), READY, [Gap("instructions", False)]),
        (replace(NLI, examples=Examples()), READY, [Gap("examples", False)]),
        (replace(NLI, context=()), replace(READY, context_count=0), []),
    ],
)
def test_each_gap_alone(config, prepared, expected):
    assert find_gaps(config, prepared) == expected


def test_what_is_needed_comes_first():
    bare = load_config(load_templates()["picture-questions"].text)
    found = find_gaps(bare, Preparation(context_count=0, target_count=0, judge_count=0))
    assert [gap.name for gap in found] == ["contexts", "target", "examples", "judges"]
    assert [gap.is_needed for gap in found] == [True, False, False, False]
