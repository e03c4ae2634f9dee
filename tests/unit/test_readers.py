"""Readers of changed sentences: what they get, and what their judgements mean."""

import csv

import pytest

from bench.readers import (
    READ_CONTROLS,
    READ_TEXTS,
    choose_read_texts,
    measure_validity,
    read_judgements,
    write_texts,
)

FLIPS = [{"label": "good", "from": f"Text {n}.", "to": f"Txet {n}."} for n in range(100)]


def test_readers_learn_nothing_of_a_text_but_its_label(tmp_path):
    rows = choose_read_texts(FLIPS, 0)
    assert rows == choose_read_texts(FLIPS, 0) != choose_read_texts(FLIPS, 1)
    changed = [row for row in rows if row["source"] == "changed"]
    assert (len(changed), len(rows)) == (READ_TEXTS, READ_TEXTS + READ_CONTROLS)
    assert rows[: len(changed)] != changed  # shuffled
    # No sentence is there in both forms.
    assert len({row["text"].split()[1] for row in rows}) == len(rows)
    write_texts(tmp_path / "texts.csv", rows)
    with (tmp_path / "texts.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [set(row) for row in written] == [{"id", "text", "label"}] * len(rows)


def test_validity_and_agreement():
    """Three of four changed sentences are judged twice, of which readers disagree about one."""
    rows = [{"id": one, "source": "changed"} for one in "abcd"]
    rows.append({"id": "e", "source": "unchanged"})
    judgements = {
        "a": {"x": True, "y": True},
        "b": {"x": True, "y": False},
        "c": {"x": False, "y": False},
        "d": {"x": True},
        "e": {"x": True, "y": True},
    }
    found = measure_validity(rows, judgements)
    assert (found["changed"]["texts"], found["changed"]["valid"]) == (3, 1)
    # Wilson's interval of 1 of 3.
    assert found["changed"]["interval"] == [0.061, 0.792]
    assert found["unchanged"]["share"] == 1.0
    assert found["agreement"] == 0.75
    # Krippendorff by hand: 2 disagreeing of 8 pairs; by chance 5 x 3 x 2 of 8 x 7.
    assert found["alpha"] == pytest.approx(1 - (2 / 8) / (30 / 56), abs=0.001)


def test_without_judgements_there_are_no_shares():
    found = measure_validity([{"id": "a", "source": "changed"}], {})
    assert found == {
        "changed": {"texts": 0, "valid": 0},
        "unchanged": {"texts": 0, "valid": 0},
    }


@pytest.mark.parametrize("line", ["a,x,maybe", "a,,yes", ",x,no"])
def test_a_line_that_says_nothing_is_named(tmp_path, line):
    path = tmp_path / "readers.csv"
    path.write_text(f"id,reader,valid\nb,x,yes\n{line}\n")
    with pytest.raises(SystemExit, match="line 3"):
        read_judgements(path)
    path.write_text("id,reader,valid\nb,x, YES\nb,y,no\n")
    assert read_judgements(path) == {"b": {"x": True, "y": False}}
