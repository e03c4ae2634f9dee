"""Kinds of submission: found by themselves, refused when a part is missing."""

import pytest

from evaluation.kinds import KINDS, MAX_NAME_CHARS, TARGET_KIND, Kind, list_submitted_kinds
from evaluation.submissions.kinds import SubmissionKind, find_submission_kind
from tasks.config.loading import load_config
from tests.support.guide import registered_for_now
from tests.unit.tasks.config_texts import MINIMAL

PARTS = {
    "label": "a thing",
    "place": 50,
    "answers": "file",
    "title": "A thing",
    "words": "It answers.",
    "form": object,
    "find_problem": lambda self, sources: None,
    "receive": lambda self, submission, folder, heartbeat: None,
}


def add(name, **parts):
    with registered_for_now():
        return type("Thing", (SubmissionKind,), parts, name=name)


@pytest.mark.parametrize("part", SubmissionKind.PARTS)
def test_a_kind_without_a_part_is_refused_by_its_name(part):
    assert add("thing", **PARTS)
    lacking = {name: value for name, value in PARTS.items() if name != part}
    with pytest.raises(TypeError, match=f"thing lacks: {part}\\."):
        add("thing", **lacking)


def test_a_name_is_given_once_and_fits_its_column():
    with pytest.raises(TypeError, match="hub already"):
        add("hub", **PARTS)
    with pytest.raises(TypeError, match="letters"):
        add("x" * (MAX_NAME_CHARS + 1), **PARTS)


def test_each_kind_that_people_submit_stands_in_a_place_of_its_own():
    assert set(list_submitted_kinds()) == {*KINDS} - {TARGET_KIND}
    places = [kind.place for kind in KINDS.values()]
    assert len({*places}) == len(places)
    joint_places = [kind.joint.place for kind in KINDS.values() if kind.joint]
    assert len({*joint_places}) == len(joint_places)


def test_nobody_submits_a_target():
    assert find_submission_kind(TARGET_KIND) is None
    assert find_submission_kind("unknown") is None
    assert not KINDS[TARGET_KIND].fits(load_config(MINIMAL))


def test_a_class_without_a_name_only_shares_code():
    before = dict(KINDS)
    type("Shared", (Kind,), {})
    assert before == KINDS
