"""Boards as files for other programs and for papers."""

import csv
import io
import json

import pytest

from leaderboard.board.exports import (
    choose_digits,
    describe_early_set,
    describe_table_formula,
    escape_latex,
    write_board_csv,
    write_board_latex,
    write_snapshot_bibtex,
    write_table_json,
)

CELL = {"value": 81.25, "low": 79.5, "high": 83.0}
ONCE = {"value": 12.0, "low": None, "high": None}
NONE = {"value": None, "low": None, "high": None}


def row(model, rank="1", score=CELL, **parts):
    return {
        "id": "id-1", "model": model, "owner": "w-abc", "rank": rank, "first": 1, "last": 2,
        "dynascore": score, "metrics": {"accuracy": score, "memory": ONCE},
        "in_the_loop": ["round-1"], "missing": [], **parts,
    }  # fmt: skip


def table(*rows):
    return {
        "task": {"code": "nli", "name": "Natural language inference"},
        "date": "2026-02-03",
        "metrics": [
            {"name": "accuracy", "version": 1},  # as in snapshots of former releases
            {"name": "memory", "version": 1, "higher_is_better": False},
        ],
        "sets": [{"name": "round-1", "version": 2}],
        "rows": list(rows),
    }


def test_csv_has_a_line_for_each_model():
    given = table(
        row("Größer, besser"),
        row("late", "", NONE, first=None, last=None, missing=["round-1", "memory"]),
    )
    lines = list(csv.DictReader(io.StringIO(write_board_csv(given))))
    assert lines[0] == {
        "rank": "1", "first": "1", "last": "2", "model": "Größer, besser", "owner": "w-abc",
        "team": "", "id": "id-1",
        "dynascore": "81.25", "dynascore_low": "79.5", "dynascore_high": "83.0",
        "dynascore_least": "81.25", "dynascore_most": "81.25",
        "accuracy": "81.25", "accuracy_low": "79.5", "accuracy_high": "83.0", "memory": "12.0",
        "memory_low": "", "memory_high": "", "in_the_loop": "round-1", "not_run": "",
        "provisional": "", "formula": "",
    }  # fmt: skip
    assert lines[1]["dynascore"] == lines[1]["first"] == ""
    assert lines[1]["not_run"] == "round-1; memory"


def test_a_table_of_exchange_rates_says_what_its_score_is_made_of():
    given = table(row("ALBERT")) | {
        "main": "accuracy", "weights": {"metrics": {"accuracy": 3, "memory": 1}},
        "rates": {"accuracy": 1.0, "memory": 0.25},
    }  # fmt: skip
    for budgets, left in (({}, "memory"), ({"memory": 8.0}, "(8 − memory)")):
        words = describe_table_formula({**given, "budgets": budgets})
        assert f"0.75 × accuracy + 0.25 × {left} ÷ 0.25." in words
    assert "16 − memory" in describe_table_formula(given)  # of a former release
    assert describe_table_formula({**given, "rates": {}}) == ""


def test_files_say_which_counting_sets_are_still_judged():
    early = {"is_provisional": True, "judged": 1132, "to_judge": 4000}
    given = table(row("ALBERT"))
    given["sets"] = [
        {"name": "round-1", "version": 2, "counts": True, **early},
        {"name": "round-2", "version": 1, "counts": False, **early},
        {"name": "round-3", "version": 1, "is_provisional": True},  # from before it was counted
        {"name": "round-4", "version": 1, "is_provisional": False},
    ]
    (line,) = csv.DictReader(io.StringIO(write_board_csv(given)))
    words = "round-1 v2: provisional, 1,132 of 4,000 judged; round-3 v1: provisional"
    assert line["provisional"] == words
    assert rf"\multicolumn{{5}}{{l}}{{{words}}} \\" in write_board_latex(given)
    assert [describe_early_set(one) == "" for one in given["sets"]] == [False, False, False, True]


def test_an_anchored_board_tells_its_formula_in_a_paper():
    given = table(row("ALBERT"))
    assert describe_table_formula(given) == ""
    given |= {
        "main": "accuracy",
        "weights": {"metrics": {"accuracy": 4.0}},
        "anchors": {"version": 2, "scales": {"accuracy": {"low": 34.35, "high": 100.0}}},
    }
    assert "accuracy from 34.35 to 100" in describe_table_formula(given)
    assert escape_latex(describe_table_formula(given)) in write_board_latex(given)


def test_the_points_of_an_anchored_score_are_columns_of_what_has_weight():
    scale = {"low": 34.35, "high": 100.0}
    given = table(row("ALBERT", points={"accuracy": 40.5})) | {
        "main": "accuracy", "weights": {"metrics": {"accuracy": 3, "memory": 0}},
        "anchors": {"version": 2, "scales": {"accuracy": scale, "memory": scale}},
    }  # fmt: skip
    (line,) = csv.DictReader(io.StringIO(write_board_csv(given)))
    assert line["points_accuracy"] == "40.5"
    assert "points_memory" not in line


def test_json_has_all():
    given = table(row("ALBERT"))
    assert json.loads(write_table_json(given)) == given


def test_latex_is_a_booktabs_table():
    given = table(row("a_b & 50 %\n\\input{x}", "2="), row("late", "", NONE))
    assert write_board_latex(given, "https://bench.test/t/nli/").splitlines() == [
        "% nli on 2026-02-03: round-1 v2",
        "% https://bench.test/t/nli/",
        r"\begin{tabular}{llrrr}",
        r"\toprule",
        r"Rank & Model & Dynascore & accuracy (\%) & memory (GiB; lower is better) \\",
        r"\midrule",
        r"2= & a\_b \& 50 \% \textbackslash{}input\{x\} & 81.2 [79.5, 83.0] "
        r"& 81.2 [79.5, 83.0] & 12.00 \\",
        r"-- & late & -- & -- & 12.00 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert "bench.test" not in write_board_latex(given)


def test_a_score_that_is_a_range_is_one_in_each_file():
    score = {"value": None, "low": 38.06, "high": 60.0, "least": 40.94, "most": 58.25}
    given = table(row("file", "1–4", score, missing=["memory (unknown for uploaded predictions)"]))
    (line,) = csv.DictReader(io.StringIO(write_board_csv(given)))
    found = [line[f"dynascore{part}"] for part in ("", "_low", "_high", "_least", "_most")]
    assert found == ["", "38.06", "60.0", "40.94", "58.25"]
    assert (line["rank"], line["not_run"]) == ("1–4", "memory (unknown for uploaded predictions)")
    told = write_board_latex(given)
    assert "1--4 & file & 40.9--58.2 [38.1, 60.0] &" in told
    assert told.count("multicolumn") == 1
    assert "multicolumn" not in write_board_latex(table(row("whole")))


def test_a_paper_has_the_metrics_that_count():
    given = table(row("ALBERT"))
    given |= {"main": "memory", "weights": {"metrics": {"accuracy": 4.0, "memory": 0.0}}}
    assert "accuracy" in write_board_latex(given)
    assert "memory" in write_board_latex(given)
    given["main"] = "accuracy"
    assert "memory" not in write_board_latex(given)


def test_no_letter_of_a_name_is_a_command():
    assert escape_latex('{}$#~^<>|"') == (
        r"\{\}\$\#\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}"
        r"\textquotedbl{}"
    )


def test_bibtex_cites_a_snapshot():
    told = write_snapshot_bibtex(table(), 3, "", "ab12", "https://bench.test/t/nli/models/3/")
    assert told == (
        "@misc{dynabench-nli-3,\n"
        "  title = {{Leaderboard of Natural language inference, snapshot 3}},\n"
        "  author = {{Dynabench}},\n"
        "  year = {2026},\n"
        "  month = {2},\n"
        "  howpublished = {\\url{https://bench.test/t/nli/models/3/}},\n"
        "  note = {Snapshot 3 of 2026-02-03, SHA-256 ab12}\n"
        "}\n"
    )
    assert r"title = {{A \& B}}" in write_snapshot_bibtex(table(), 3, "A & B", "ab12", "x")


def test_an_owners_metric_stands_beside_its_version():
    given = table(row("A", metrics={"accuracy": CELL, "custom:safe": CELL}))
    given["metrics"][1] = {"name": "custom:safe", "version": 3}
    (line,) = csv.DictReader(io.StringIO(write_board_csv(given)))
    assert (line["custom:safe"], line["custom:safe_version"]) == ("81.25", "3")
    assert r"custom:safe (\%; version 3)" in write_board_latex(given)


@pytest.mark.parametrize("is_calibrated", [True, False])
def test_a_judges_metric_never_comes_without_its_agreement_with_people(is_calibrated):
    agreement = {
        "low": 0.5, "kappa": 0.75, "high": 0.9, "n": 300, "is_calibrated": is_calibrated,
    }  # fmt: skip
    judge = {"name": "=grader", "number": 2, "agreement": agreement}
    given = table(row("A", metrics={"accuracy": CELL, "llm_judge": CELL}))
    given["metrics"][1] = {"name": "llm_judge", "version": 2, "judge": judge}
    given["weights"] = {"metrics": {"llm_judge": 1.0}}
    (line,) = csv.DictReader(io.StringIO(write_board_csv(given)))
    assert line["llm_judge_judge"] == "'=grader (2)"
    told = [line[f"llm_judge_{name}"] for name in ("kappa_low", "kappa", "kappa_high")]
    assert told == ["0.5", "0.75", "0.9"]
    assert (line["llm_judge_judged_by_both"], line["llm_judge_is_calibrated"]) == (
        "300", str(is_calibrated),
    )  # fmt: skip
    assert ("at least 0.50" in write_board_latex(given)) == is_calibrated


@pytest.mark.parametrize(
    ("name", "value", "digits"),
    [("memory", 0.449, 2), ("throughput", 126.4, 0), ("throughput", 38.2, 1), ("accuracy", 80, 1)],
)
def test_a_paper_gets_the_digits_that_the_page_shows(name, value, digits):
    assert choose_digits(name, value) == digits
    given = table(row("one", metrics={"accuracy": CELL, "memory": {**ONCE, "value": 0.449}}))
    assert "& 0.45 " in write_board_latex(given)
