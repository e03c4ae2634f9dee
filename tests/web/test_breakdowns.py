"""The same numbers for parts of rounds: each example in the right part, as if it stood alone."""

import json
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Example, TargetOutput
from tasks.models import Context, TargetModel, TargetVersion, Task
from tests.support.task_reports import by, load, mood, report, row, words  # noqa: F401
from validation.statistics.counts import GROUPINGS

pytestmark = pytest.mark.usefixtures("few_are_enough")


def parts(code, name, *, whole=False):
    found = report(code, "--by", name)
    assert (found["task"], found["by"]) == (code, name)
    rounds = [found["all"]] if whole else found["rounds"]
    return {(round["round"], part.pop(name)): part for round in rounds for part in round["parts"]}


def test_by_the_authors_label(mood):  # noqa: F811
    found = parts("mood", "label")
    assert list(found) == [(1, "negative"), (1, "positive"), (2, None)]
    positive = found[1, "positive"]
    assert (positive["collected"], positive["judged"], positive["verified"]) == (4, 3, 1)
    assert (positive["vmer"]["value"], positive["vmer"]["n"]) == (1 / 4, 4)
    assert (positive["votes"], positive["authors"]) == (9, 2)
    assert list(positive) == list(report("mood")["rounds"][0])[1:]
    everything = parts("mood", "label", whole=True)
    assert {key: part["collected"] for key, part in everything.items()} == {
        (None, "negative"): 1, (None, "positive"): 4, (None, None): 2,
    }  # fmt: skip


def test_parts_add_up_to_the_round(mood):  # noqa: F811
    whole = report("mood")["rounds"]
    for name in GROUPINGS:
        found = parts("mood", name)
        for number, one in enumerate(whole, start=1):
            mine = [part for (round, _), part in found.items() if round == number]
            for count in ("collected", "judged", "decided", "verified", "votes"):
                assert sum(part[count] for part in mine) == one[count], (name, count)


def test_by_tag_and_by_time(mood):  # noqa: F811
    Context.objects.filter(examples__uid__in=["a1", "b2"]).update(tag="daily life")
    tags = {key: part["collected"] for key, part in parts("mood", "tag").items()}
    assert tags == {(1, "daily life"): 5, (2, ""): 2}  # all of a round share the empty context
    Example.objects.update(created_at=datetime(2026, 11, 16, tzinfo=UTC))
    late = datetime(2026, 11, 22, 23, 59, tzinfo=UTC)
    Example.objects.filter(uid="a1").update(created_at=late)
    Example.objects.filter(uid="a2").update(created_at=datetime(2026, 11, 23, tzinfo=UTC))
    weeks = {key: part["collected"] for key, part in parts("mood", "week").items()}
    assert weeks == {(1, "2026-11-16"): 4, (1, "2026-11-23"): 1, (2, "2026-11-16"): 2}
    days = parts("mood", "day")
    assert [value for round, value in days if round == 1] == [
        "2026-11-16", "2026-11-22", "2026-11-23",
    ]  # fmt: skip


def test_by_target_each_has_its_own_errors(mood):  # noqa: F811
    task = Task.objects.get(code="mood")
    second = TargetModel.objects.create(task=task, name="b")
    version = TargetVersion.objects.create(target=second, digest="b")
    for uid, said, fooled in (("a1", "positive", False), ("a2", "negative", True)):
        TargetOutput.objects.create(
            example=Example.objects.get(uid=uid), target=second, version=version, position=1,
            output={"label": said}, seconds=0, fooled=fooled,
        )  # fmt: skip
    found = parts("mood", "target")
    first = report("mood")["rounds"][0]
    assert [value for round, value in found if round == 1] == ["b", "mood_m"]
    assert found[1, "mood_m"]["vmer"] == first["vmer"]
    other = found[1, "b"]
    assert (other["collected"], other["fooled"], other["verified"]) == (2, 1, 1)
    assert other["vmer"]["value"] == 0  # the verified one did not fool this target
    assert other["model_accuracy"]["value"] == 1  # both times it says what all people say
    assert (2, None) in found  # without a target's answer


def test_human_and_model_on_the_same_votes(mood):  # noqa: F811
    first = report("mood")["rounds"][0]
    # a1: all three, target wrong; a2, a3: all three, target right; b1: the lone vote is wrong
    assert (first["human_accuracy"]["value"], first["human_accuracy"]["n"]) == (9 / 10, 10)
    assert (first["model_accuracy"]["value"], first["model_accuracy"]["n"]) == (7 / 10, 10)
    assert first["human_model_gap"]["value"] == pytest.approx(2 / 10)
    assert first["human_model_gap"]["method"] == "student-by-author"


def test_verdicts_are_held_against_the_authors_label(mood):  # noqa: F811
    Example.objects.get(uid="a3").validations.update(label="", verdict="correct")  # not fooled
    Example.objects.get(uid="a1").validations.update(label="", verdict="correct")  # fooled
    Example.objects.get(uid="a2").validations.update(label="", verdict="incorrect")
    first = report("mood", "--round", 1)["rounds"][0]
    assert (first["human_accuracy"]["n"], first["human_accuracy"]["value"]) == (7, 6 / 7)
    assert first["model_accuracy"]["value"] == 4 / 7


def test_free_text_has_no_human_accuracy(db, tmp_path):
    rows = [row(f"u{n}", by(f"answer {n}", f"answer {n}", "x")) for n in range(70)]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    load(file, "--create", "--policy", "at-least:2")
    first = report("mood", "--by", "week")["rounds"][0]["parts"][0]
    assert first["human_accuracy"] is None
    assert "different answers" in first["notes"]["human_accuracy"]
    assert first["unanimous_share"]["value"] == 0


def test_the_queries_of_a_breakdown_do_not_grow(mood, tmp_path):  # noqa: F811
    with CaptureQueriesContext(connection) as before:
        report("mood", "--by", "label")
    rows = [row(f"x{n}", by("positive"), round=n, label=f"l{n}") for n in range(3, 9)]
    file = tmp_path / "more.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    load(file)
    with CaptureQueriesContext(connection) as after:
        report("mood", "--by", "label")
    assert len(after) == len(before) <= 6


def test_in_words_and_what_cannot_be(mood, qa):  # noqa: F811
    assert "Round 1, label positive\n" in words("mood", "--by", "label")
    assert "Round 2, label unknown\n" in words("mood", "--by", "label")
    with pytest.raises(CommandError, match="--by: "):
        report("qa", "--by", "label")
    with pytest.raises(CommandError, match="--policy"):
        report("mood", "--by", "tag", "--policy", "strict")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "human", "gap"),
    [("r1-dev", 0.869111, 0.535778), ("r2-dev", 0.890833, 0.5575), ("r2-test", 0.885833, 0.5525)],
)
def test_people_on_dynasent(db, data, name, human, gap):
    load(data / f"dynasent-{name}.jsonl.gz", "--task", "x", "--create", "--policy", "at-least:3")
    found = report("x")["all"]
    assert found["model_accuracy"]["value"] == pytest.approx(1 / 3)
    assert found["human_accuracy"]["n"] == found["votes"]
    assert round(found["human_accuracy"]["value"], 6) == human
    assert round(found["human_model_gap"]["value"], 6) == gap
