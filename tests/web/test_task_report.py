"""manage.py task_report: each number by its definition, and equal to the published ones."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json

import pytest
from django.core.management import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Example
from core.accounts.services import get_annotator
from tasks.models import Round
from tests.support.task_reports import (
    by,
    load,
    mood,  # noqa: F401
    report,
    row,
    words,
)
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.models import Consensus
from validation.rates.agreement import SAME_LABEL_REASON
from validation.statistics.report import NO_AUTHOR_REASON, NO_VOTES_REASON

pytestmark = pytest.mark.usefixtures("few_are_enough")

KEYS = [
    *("round", "collected", "fooled", "judged", "decided", "verified", "verified_fooled", "mer"),
    *("vmer", "fooled_of_decided", "consensus_labels", "majority_share", "unanimous_share"),
    *("fleiss_kappa", "krippendorff_alpha", "validators", "authors", "votes", "notes"),
    *("human_accuracy", "model_accuracy", "human_model_gap", "program_examples", "program_votes"),
]


@pytest.fixture(autouse=True)
def _prepares_nothing(db, monkeypatch):
    """As commands do, which are no web processes: plans made for empty tables would be kept."""
    if connection.vendor == "postgresql":
        monkeypatch.setattr(connection.connection, "prepare_threshold", None)


def test_every_number_of_a_round(mood):
    whole = report(mood)
    first, second = whole["rounds"]
    assert (list(whole), whole["task"]) == (["task", "rounds", "all"], "mood")
    assert [list(first), list(second), list(whole["all"])] == [KEYS] * 3
    counts = {name: first[name] for name in KEYS if isinstance(first[name], int)}
    assert counts == {
        "round": 1, "collected": 5, "fooled": 4, "judged": 4, "decided": 3, "verified": 2,
        "verified_fooled": 1, "validators": 3, "authors": 2, "votes": 12,
        "program_examples": 0, "program_votes": 0,
    }  # fmt: skip
    shares = {
        name: (first[name]["value"], first[name]["n"], first[name]["method"])
        for name in ("mer", "vmer", "fooled_of_decided", "majority_share", "unanimous_share")
    }
    assert shares == {
        "mer": (4 / 5, 5, "korn-graubard"),
        "vmer": (1 / 5, 5, "korn-graubard"),
        "fooled_of_decided": (1 / 3, 3, "korn-graubard"),
        "majority_share": (3 / 4, 4, "korn-graubard"),
        "unanimous_share": (3 / 4, 4, "korn-graubard"),
    }
    assert set(first["vmer"]) == {"value", "low", "high", "n", "method"}
    assert first["vmer"]["low"] < 0.2 < first["vmer"]["high"]
    assert first["consensus_labels"] == {"negative": 2, "positive": 1, "none": 1}
    # by hand: agreement (1 + 1 + 1 + 1/3) / 4, chance (4² + 8²) / 12²
    assert first["fleiss_kappa"] == pytest.approx((10 / 12 - 80 / 144) / (1 - 80 / 144))
    assert first["notes"] == {}


def test_what_cannot_be_computed_says_why(mood):
    second = report(mood, "--round", 2)["rounds"][0]
    assert (second["fooled"], second["mer"], second["authors"]) == (None, None, None)
    assert (second["fleiss_kappa"], second["krippendorff_alpha"]) == (None, None)
    assert second["notes"] == {
        "fooled": second["notes"]["mer"],
        "mer": second["notes"]["mer"],
        "fleiss_kappa": SAME_LABEL_REASON,
        "krippendorff_alpha": SAME_LABEL_REASON,
        "authors": NO_AUTHOR_REASON,
    }
    assert (second["verified_fooled"], second["vmer"]["value"]) == (1, 1 / 2)
    assert second["validators"] == 5  # three known ones and two votes of unknown people
    assert second["consensus_labels"] == {"positive": 1, "none": 1}


def test_all_rounds_together(mood):
    whole = report(mood)["all"]
    assert (whole["round"], whole["notes"]["round"]) == (None, "all rounds together")
    assert (whole["collected"], whole["judged"], whole["votes"]) == (7, 6, 17)
    assert (whole["validators"], whole["authors"]) == (5, 2)
    assert whole["consensus_labels"] == {"negative": 2, "positive": 2, "none": 2}
    assert report(mood, "--round", 1)["all"]["collected"] == 5


def test_another_policy_is_tried_without_storing_it(mood):
    before = list(Consensus.objects.order_by("pk").values())
    tried = report(mood, "--policy", "plurality")
    assert tried["rounds"][0]["decided"] == 4
    assert tried["rounds"][1]["consensus_labels"] == {"positive": 2, "none": 0}
    assert report(mood, "--policy", "at-least:3") == report(mood)
    assert report(mood, "--policy", "dawid-skene:0.9")["all"]["judged"] == 6
    assert list(Consensus.objects.order_by("pk").values()) == before


def test_an_owners_decision_counts_under_any_policy(mood, alice):
    example = Example.objects.get(uid="b2")
    override_consensus(example=example, owner=alice, choice=Vote(label="positive"))
    for arguments in ((), ("--policy", "at-least:3")):
        first = report(mood, *arguments)["rounds"][0]
        assert (first["decided"], first["judged"], first["verified_fooled"]) == (4, 4, 2)
        assert first["majority_share"]["value"] == 3 / 4


def test_retracted_examples_are_in_none_of_them(mood):
    Example.objects.filter(uid__in=["a1", "c2"]).update(retracted_at=timezone.now())
    for arguments in ((), ("--policy", "at-least:3")):
        whole = report(mood, *arguments)["all"]
        assert (whole["collected"], whole["votes"], whole["validators"]) == (5, 12, 3)


def test_answers_that_are_no_labels(db, tmp_path):
    rows = [row(f"u{n}", by(f"answer {n}", f"answer {n}", "x")) for n in range(70)]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    load(file, "--create", "--policy", "at-least:2")
    first = report("mood")["rounds"][0]
    assert (first["unanimous_share"]["value"], first["majority_share"]["value"]) == (0, 1)
    assert first["fleiss_kappa"] is None
    assert "different answers" in first["notes"]["fleiss_kappa"]


def test_an_empty_round(db, nli):
    first = report("nli")["rounds"][0]
    assert (first["collected"], first["votes"], first["consensus_labels"]) == (0, 0, {"none": 0})
    assert first["notes"]["vmer"] == "no examples"
    assert first["notes"]["majority_share"] == NO_VOTES_REASON


def test_the_number_of_queries_does_not_grow(mood, tmp_path):
    with CaptureQueriesContext(
        connection,
    ) as before:
        report(mood)
    rows = [row(f"x{n}", by("positive"), round=n) for n in range(3, 9)]
    file = tmp_path / "more.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    load(file)
    with CaptureQueriesContext(connection) as after:
        report(mood)
    assert len(after) == len(before) <= 6
    assert Round.objects.count() == 8


def test_in_words(mood):
    text = words(mood)
    assert "vmer                 0.2000 (" in text
    assert "consensus labels     negative 2, positive 1, none 1" in text
    assert f"authors              – ({NO_AUTHOR_REASON})" in text


def test_what_there_is_is_named(mood):
    with pytest.raises(CommandError, match=r"'mod'\. Tasks: mood"):
        report("mod")
    with pytest.raises(CommandError, match=r" 7\. Rounds: 1 \(closed\), 2 "):
        report(mood, "--round", 7)
    with pytest.raises(CommandError, match="--policy: 'best'"):
        report(mood, "--policy", "best")


def test_authors_who_judge_are_two_roles(mood, alice):
    annotator = get_annotator(alice)
    Example.objects.filter(uid="c1").update(annotator=annotator)
    assert report(mood)["rounds"][1]["authors"] == 1


PUBLISHED = [
    ("r1-dev", 3600, 1200, 0.615758, 1280, 0.345556, 0.214167),
    ("r1-test", 3600, 1200, 0.614928, 1264, None, 0.217778),
    ("r2-dev", 720, 240, 0.681024, None, None, 0.230556),
    ("r2-test", 720, 240, 0.667438, None, None, 0.222222),
]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows", "each", "kappa", "validators", "unanimous", "vmer_of_five"), PUBLISHED
)
def test_dynasents_published_numbers(
    db, data, name, rows, each, kappa, validators, unanimous, vmer_of_five
):
    load(data / f"dynasent-{name}.jsonl.gz", "--task", "x", "--create", "--policy", "at-least:3")
    found = report("x")["all"]
    assert found["collected"] == rows
    assert found["consensus_labels"] == {
        "negative": each, "neutral": each, "positive": each, "none": 0,
    }  # fmt: skip
    assert round(found["vmer"]["value"], 6) == 0.666667
    assert round(found["fleiss_kappa"], 6) == kappa
    assert validators in (None, found["validators"])
    assert unanimous in (None, round(found["unanimous_share"]["value"], 6))
    for policy in ("at-least:5", "n-equal:5"):
        tried = report("x", "--policy", policy)["all"]
        assert round(tried["vmer"]["value"], 6) == vmer_of_five


@pytest.mark.data
def test_sst_published_majorities_and_rounds_side_by_side(db, data):
    arguments = ("--task", "x", "--create", "--policy", "at-least:3")
    load(data / "dynasent-sst-dev.jsonl.gz", *arguments)
    load(data / "dynasent-r2-dev.jsonl.gz", *arguments)
    sst, second = report("x")["rounds"]
    assert (sst["round"], second["round"]) == (0, 2)
    assert round(sst["majority_share"]["value"], 6) == 0.941871
    assert sst["consensus_labels"] == {
        "mixed": 108, "negative": 421, "neutral": 75, "positive": 433, "none": 64,
    }  # fmt: skip
    assert sst["vmer"] is None
    assert round(second["fleiss_kappa"], 6) == 0.681024
    assert second["authors"] > 100
    assert second["vmer"]["method"] == "korn-graubard"
    load(data / "dynasent-r2-dev.jsonl.gz", "--task", "y", "--create", "--policy", "at-least:5")
    assert round(report("y")["all"]["vmer"]["value"], 6) == 0.230556


@pytest.mark.data
def test_every_row_of_the_anli_sample_is_a_validated_error(db, data):
    load(data / "anli-dev-sample.jsonl.gz", "--task", "x", "--create", "--policy", "n-equal:2")
    whole = report("x")
    assert [part["round"] for part in whole["rounds"]] == [1, 2, 3]
    assert (whole["all"]["vmer"]["value"], whole["all"]["mer"]["value"]) == (1, 1)
    assert whole["all"]["validators"] == 2073
