"""What lm-evaluation-harness and Inspect wrote down, as lines of a predictions file."""

import json
import math
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from core.files.zip_members import ZIP_ZSTANDARD
from evaluation.contract import MIB, InvalidOutput
from evaluation.isolation.inference.elsewhere import iterate_answer_lines
from evaluation.isolation.inference.precheck import (
    SubmissionRefused,
    check_predictions,
    store_predictions,
)
from evaluation.isolation.uploads import eval_logs
from evaluation.isolation.uploads.archives import ArchiveRefused
from tasks.config.loading import load_config

OFFICIAL = Path(__file__).parents[3] / "tasks" / "official"
NLI = load_config((OFFICIAL / "nli" / "task.yaml").read_text())
QA = load_config((OFFICIAL / "qa" / "task.yaml").read_text())
LABELS = ["entailment", "neutral", "contradiction"]


def chosen(uid, *logs, **more):
    doc = {"uid": uid, "choices": LABELS, "target": 0}
    return {"doc": doc, "filter": "none", "filtered_resps": [[log, False] for log in logs]} | more


def written(uid, text):
    return {"doc": {"uid": uid, "target": "x"}, "filter": "none", "filtered_resps": [text]}


def harness(tmp_path, *rows):
    path = tmp_path / "samples.jsonl"
    path.write_text(
        "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    )
    return path


def sample(uid, answer, **more):
    return {
        "id": uid,
        "epoch": 1,
        "scores": {"label_scorer": {"value": 1, "answer": answer}},
    } | more


def inspect_log(tmp_path, *samples, method=zipfile.ZIP_DEFLATED):
    """A log as Inspect packs it; zstandard as in its newer versions, which Python cannot write."""
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for number, one in enumerate(samples):
            data = one if isinstance(one, bytes) else json.dumps(one).encode()
            name = f"samples/{number}_epoch_1.json"
            if method == ZIP_ZSTANDARD:
                data = zstandard.compress(data)
                archive.writestr(name, data, zipfile.ZIP_STORED)
            else:
                archive.writestr(name, data)
    if method == ZIP_ZSTANDARD:
        as_zstandard(path)
    return path


def as_zstandard(path):
    """Say of each stored member that it is compressed so, in both of its headers (APPNOTE 4.3)."""
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = data.find(mark)
        while at >= 0:
            if data[at + place] == zipfile.ZIP_STORED:
                data[at + place] = ZIP_ZSTANDARD
            at = data.find(mark, at + 4)
    path.write_bytes(data)


def read(config, path):
    return [json.loads(line) for line in iterate_answer_lines(config, path)]


def test_of_choices_the_likeliest_with_the_chance_of_each(tmp_path):
    path = harness(tmp_path, chosen("a", math.log(0.2), math.log(0.5), math.log(0.3)))
    (line,) = read(NLI, path)
    assert (line["id"], line["output"]) == ("a", {"label": "neutral"})
    assert line["prob"] == pytest.approx({"entailment": 0.2, "neutral": 0.5, "contradiction": 0.3})
    assert line["logprob"] <= 0


@given(st.lists(st.lists(st.floats(-900, 0), min_size=3, max_size=3), min_size=1, max_size=5))
def test_chances_are_always_taken_and_agree_with_the_answer(tmp_path_factory, logs):
    rows = [chosen(f"u{number}", *each) for number, each in enumerate(logs)]
    path = harness(tmp_path_factory.mktemp("logs"), *rows)
    check_predictions(NLI, [row["doc"]["uid"] for row in rows], iterate_answer_lines(NLI, path))
    for line in read(NLI, path):
        assert line["prob"][line["output"]["label"]] == max(line["prob"].values())


def test_of_texts_what_was_written_and_nothing_where_nothing_was(tmp_path):
    lines = read(QA, harness(tmp_path, written("a", " the mill\n"), written("b", " ")))
    assert [line["output"] for line in lines] == [{"answer": "the mill"}, None]


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, ZIP_ZSTANDARD])
def test_of_inspect_the_answer_of_the_scorer(tmp_path, method):
    rows = [sample("a", "neutral"), sample("b", None), sample("c", "Entailment.")]
    lines = read(NLI, inspect_log(tmp_path, *rows, method=method))
    outputs = [line["output"] for line in lines]
    assert [line["id"] for line in lines] == ["a", "b", "c"]
    assert outputs == [{"label": "neutral"}, None, {"label": "entailment"}]


def test_a_predictions_file_stays_as_it_is(tmp_path):
    path = harness(tmp_path, {"id": "a", "output": {"label": "neutral"}, "prob": None}, "not JSON")
    assert b"".join(iterate_answer_lines(NLI, path)) == path.read_bytes()


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("{", "Line 2: it is not JSON"),
        ("[]", "Line 2: it should be"),
        ({"doc": {"uid": "b"}}, "Line 2: a logged sample"),
        (chosen(7, 0, 0, 0), 'Line 2: "doc" has no "uid"'),
        (chosen("b", 0, 0), 'Line 2: "filtered_resps"'),
        (chosen("b", 0, "x", 0), 'Line 2: "filtered_resps"'),
        (chosen("b", 0, 0, 0, filter="strict"), "Line 2: there are several filters"),
        ({**chosen("b", 0, 0, 0), "doc": {"uid": "b", "choices": ["yes"]}}, "Line 2: the choices"),
        (written("b", 5), 'Line 2: "filtered_resps"'),
        (chosen("nobody", 0, 0, 0), "Line 2: no example has this"),
        (chosen("a", 0, 0, 0), 'Line 2: this "id" was answered before'),
    ],
)
def test_the_line_that_does_not_fit_is_named_and_nothing_is_kept(tmp_path, second, said):
    path = harness(tmp_path, chosen("a", -1, -2, -3), second)
    with pytest.raises(SubmissionRefused, match=said):
        store_predictions(NLI, ["a", "b"], path, tmp_path / "kept")


def test_a_log_that_begins_without_a_number_is_a_log(tmp_path):
    """The harness writes NaN, which is no JSON, where the model gave no likelihood."""
    path = harness(tmp_path, chosen("a", float("nan"), -2, -3))
    with pytest.raises(SubmissionRefused, match='Line 1: "filtered_resps"'):
        store_predictions(NLI, ["a"], path, tmp_path / "kept")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (b"{", "samples/0_epoch_1.json: it is not JSON"),
        (b"[" * 200_000, "it is not JSON"),
        (sample("a", "neutral", epoch=2), "further epoch"),
        (sample("a", "neutral", error={"message": "x"}), "ended with an error"),
        (sample("a", "neutral", scores={}), "has no score"),
        (sample("nobody", "neutral"), "nobody"),
    ],
)
def test_the_sample_that_does_not_fit_is_named(tmp_path, row, said):
    with pytest.raises(SubmissionRefused, match=said):
        store_predictions(NLI, ["a"], inspect_log(tmp_path, row), tmp_path / "kept")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, ZIP_ZSTANDARD])
def test_bombs_are_refused_before_they_unfold(tmp_path, monkeypatch, method):
    monkeypatch.setattr(eval_logs, "MAX_SAMPLE_BYTES", MIB)
    path = inspect_log(tmp_path, b'{"id": "' + b"a" * (2 * MIB) + b'"}', method=method)
    with pytest.raises(ArchiveRefused, match="more than 1 MiB"):
        list(eval_logs.read_samples(path))


def test_what_unfolds_a_thousandfold_is_refused(tmp_path):
    path = inspect_log(tmp_path, b"a" * (20 * MIB))
    with pytest.raises(ArchiveRefused, match="times its size"):
        list(eval_logs.read_samples(path))


@pytest.mark.parametrize("byte", [0, 1, 0x7F, 0xFF])
def test_a_damaged_log_is_refused_or_read_and_never_breaks(tmp_path, byte):
    path = inspect_log(tmp_path, sample("a", "neutral"), method=93)
    whole = path.read_bytes()
    for place in range(4, len(whole)):
        path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
        with suppress(ArchiveRefused, InvalidOutput):
            list(iterate_answer_lines(NLI, path))


def test_an_archive_without_samples_is_refused(tmp_path):
    with pytest.raises(ArchiveRefused, match="no samples"):
        list(eval_logs.read_samples(inspect_log(tmp_path)))


def test_what_names_no_label_counts_as_wrong_and_all_of_it_is_refused(tmp_path):
    some = inspect_log(tmp_path, sample("a", "neutral"), sample("b", None))
    assert "1 of 2" in check_predictions(NLI, ["a", "b"], iterate_answer_lines(NLI, some))
    none = inspect_log(tmp_path, sample("a", None), sample("b", None))
    with pytest.raises(SubmissionRefused, match="2 answered with none"):
        check_predictions(NLI, ["a", "b"], iterate_answer_lines(NLI, none))


@pytest.mark.parametrize("said", ["Neutral", " neutral. ", "`NEUTRAL`", "ｎｅｕｔｒａｌ"])
def test_a_written_label_is_read_as_elsewhere(tmp_path, said):
    (line,) = iterate_answer_lines(NLI, harness(tmp_path, written("u1", said)))
    assert json.loads(line)["output"] == {"label": "neutral"}


def test_choices_are_spelled_as_the_labels(tmp_path):
    row = chosen("u1", -3.0, -0.1, -2.0)
    row["doc"]["choices"] = [label.upper() for label in LABELS]
    (line,) = iterate_answer_lines(NLI, harness(tmp_path, row))
    assert json.loads(line)["output"] == {"label": "neutral"}
    assert {*json.loads(line)["prob"]} == {*LABELS}
