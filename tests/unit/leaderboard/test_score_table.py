"""`python -m leaderboard.dynascore FILE.jsonl`."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from leaderboard.dynascore import TableError, TaskTable, draw_tables, main, read_tables

ROOT = Path(__file__).parents[3]
FOUR = [
    {"task": "nli", "model": "A", "perf": 90, "throughput": 10, "memory": 8, "fairness": 95,
     "robustness": 80},
    {"task": "nli", "model": "B", "perf": 85, "throughput": 20, "memory": 4, "fairness": 93,
     "robustness": 78},
    {"task": "nli", "model": "C", "perf": 80, "throughput": 40, "memory": 2, "fairness": 90,
     "robustness": 75},
    {"task": "nli", "model": "D", "perf": 60, "throughput": 100, "memory": 1, "fairness": 88,
     "robustness": 70},
]  # fmt: skip


@pytest.fixture
def run(tmp_path, capsys):
    """Scores rows of a file: the printed result, and what went to stderr."""

    def scored(rows, *options: str):
        file = tmp_path / "table.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        main([str(file), *options])
        out, err = capsys.readouterr()
        return json.loads(out), err

    return scored


def with_all(rows, **fields):
    return [row | fields for row in rows]


def test_the_classic_example(run):
    found, err = run(FOUR, "--mode", "classic")
    assert found["mode"] == "classic"
    assert found["tasks"].keys() == {"nli"}
    rates = found["tasks"]["nli"]["rates"]
    assert rates == pytest.approx(
        {"perf": 1, "throughput": 3, "memory": 5 / 12, "fairness": 11 / 30, "robustness": 5 / 12}
    )
    rows = found["tasks"]["nli"]["rows"]
    assert [row.keys() for row in rows] == [{"model", "dynascore", "rank", "low", "high"}] * 4
    assert [(row["model"], row["rank"], row["low"], row["high"]) for row in rows] == [
        ("A", 1, None, None),
        ("B", 2, None, None),
        ("C", 3, None, None),
        ("D", 4, None, None),
    ]
    printed = [104.203030, 102.037879, 99.048485, 89.666667]
    assert [row["dynascore"] for row in rows] == pytest.approx(printed, abs=1e-6)
    assert err == ""


def test_robust_is_usual_and_options_reach_the_rule(run):
    usual, _ = run(FOUR)
    assert usual["mode"] == "robust"
    wider, _ = run(FOUR, "--memory-budget", "32")
    rate = usual["tasks"]["nli"]["rates"]["memory"]
    moved = [
        one["dynascore"] - other["dynascore"]
        for one, other in zip(
            wider["tasks"]["nli"]["rows"], usual["tasks"]["nli"]["rows"], strict=True
        )
    ]
    assert moved == pytest.approx([2 / rate] * 4)
    gap, _ = run(FOUR, "--mode", "classic", "--min-gap", "5")
    assert gap["tasks"]["nli"]["rates"]["throughput"] == pytest.approx(3)
    assert gap["tasks"]["nli"]["rates"]["memory"] == pytest.approx(1 / 20)
    only, _ = run(FOUR, "--weights", "perf=0,throughput=2,memory=0,fairness=0,robustness=0")
    assert [row["model"] for row in only["tasks"]["nli"]["rows"]] == ["D", "C", "B", "A"]


def test_one_named_weight_leaves_the_others(run):
    named, _ = run(FOUR, "--weights", "perf=4, memory=1")
    usual, _ = run(FOUR)
    assert named == usual


def test_several_tasks_have_rates_of_their_own(run):
    other = [row | {"task": "qa", "memory": row["perf"], "extra": {"a": 1}} for row in FOUR]
    found, _ = run([*FOUR, *other])
    assert found["tasks"]["nli"] == run(FOUR)[0]["tasks"]["nli"]
    assert [*found["tasks"]] == ["nli", "qa"]
    assert found["tasks"]["qa"]["rates"]["memory"] == 1


def test_who_was_not_run_is_listed(run):
    late = {"task": "nli", "model": "E", "perf": 99, "throughput": None}
    found, _ = run([*FOUR, late])
    assert found["tasks"]["nli"]["rows"][:4] == run(FOUR)[0]["tasks"]["nli"]["rows"]
    assert found["tasks"]["nli"]["rows"][4] == {
        "model": "E",
        "dynascore": None,
        "rank": None,
        "low": None,
        "high": None,
        "note": "not run: throughput, memory, fairness, robustness",
    }


def test_notices_are_told_beside_the_result(run):
    found, err = run(with_all(FOUR, fairness=90))
    assert found["tasks"]["nli"]["rates"]["fairness"] is None
    assert [line.split()[:2] for line in err.splitlines()] == [["nli:", "fairness"]]
    swing = [
        {**FOUR[0], "perf": 90, "robustness": 10},
        {**FOUR[0], "model": "b", "perf": 80, "robustness": 60},
        {**FOUR[0], "model": "c", "perf": 60, "robustness": 70},
    ]
    _, err = run(swing, "--weights", "perf=3,robustness=2")
    assert any(line.startswith("nli: ") and line.endswith(": c.") for line in err.splitlines())


def test_standard_errors_give_intervals(run):
    rows = with_all(FOUR, perf_se=1.0, robustness_se=2)
    found, _ = run(rows)
    lines = found["tasks"]["nli"]["rows"]
    assert all(line["low"] < line["dynascore"] < line["high"] for line in lines)
    assert run(rows[::-1])[0] == found
    usual, _ = run(with_all(FOUR, perf_se=0, memory_se=None))
    assert [line["low"] for line in usual["tasks"]["nli"]["rows"]] == [None] * 4


def test_a_perf_of_nought_has_its_error_too():
    table = read_tables([json.dumps(FOUR[0] | {"perf": 0, "perf_se": 1}).encode()], "t")["nli"]
    assert len({drawn["A"]["perf"] for drawn in draw_tables(table)}) == 200


def test_replicates_give_intervals(run):
    sweep = [
        row | {"replicates": [{"perf": row["perf"] + step} for step in (-2, 0, 2)]} for row in FOUR
    ]
    found, _ = run(sweep)
    for line in found["tasks"]["nli"]["rows"]:
        assert line["low"] == pytest.approx(line["dynascore"] - 1, abs=0.1)
        assert line["high"] == pytest.approx(line["dynascore"] + 1, abs=0.1)
    # Who has none stays where it is.
    table = TaskTable({"a": {"perf": 1}, "b": {"perf": 2}}, {"a": {"perf": 0}, "b": {"perf": None}},
                      {"a": [{"perf": 3}], "b": []})  # fmt: skip
    assert list(draw_tables(table)) == [{"a": {"perf": 3}, "b": {"perf": 2}}]


GOOD = json.dumps(FOUR[0]).encode()


def row(**fields) -> bytes:
    return json.dumps(FOUR[1] | fields).encode()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "t:3: invalid JSON at column 2: .* Write one object per line"),
        (b"[1]", "t:3: each row must be an object"),
        (b'{"model": "B"}', 't:3: task is missing: write "task"'),
        (row(model=""), 't:3: model is missing: write "model"'),
        (row(model=7), "t:3: model is missing"),
        (row(model="A"), "t:3: A has two rows in nli"),
        (row(perf="85"), 't:3: perf is "85": write a number without quotes'),
        (row(perf=True), "t:3: perf is true"),
        (row(memory=[1]), r"t:3: memory is \[1\]"),
        (row(perf=float("nan")), "t:3: perf is not a finite"),
        (row(perf=float("inf")), "t:3: perf is not a finite"),
        (row(perf=10**400), "t:3: perf is not a finite"),
        (b'{"task": ' + b"9" * 5000 + b"}", "t:3: "),
        (b"[" * 100_000, "t:3: "),
        (b'{"task": "\xff"}', "t:3: "),
        (row(perf_se=-1), "t:3: standard errors can't be negative"),
        (row(replicates=5), "t:3: replicates must be a list of objects"),
        (row(replicates=[5]), "t:3: replicates must be a list of objects"),
        (row(replicates=[{"perf": "1"}]), 't:3: perf is "1"'),
    ],
)
def test_a_wrong_line_is_named(line, words):
    with pytest.raises(TableError, match=words):
        read_tables([GOOD, b"  ", line], "t")


def test_every_model_has_as_many_replicates():
    lines = [row(replicates=[{"perf": 1}] * 2), row(model="C", replicates=[{"perf": 1}])]
    with pytest.raises(TableError, match=r"^t:2: C .*nli"):
        read_tables(lines, "t")


def test_a_file_without_rows_is_refused():
    with pytest.raises(TableError, match=r"^t "):
        read_tables([b"\n", b""], "t")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--weights", "perf=0,throughput=0,memory=0,fairness=0,robustness=0"], "above 0"),
        (["--weights", "speed=1"], "'speed' is not a metric; use one of: perf, throughput"),
        (["--weights", "perf"], "'perf' is not a weight; write for example perf=1"),
        (["--weights", "perf=-2"], "weight of perf is -2.0"),
        (["--min-gap", "-1"], "smallest gap is -1.0"),
        (["--memory-budget", "nan"], "budget must be a finite number"),
    ],
)
def test_wrong_options_are_refused_in_words(run, capsys, options, words):
    with pytest.raises(SystemExit) as stopped:
        run(FOUR, *options)
    assert stopped.value.code not in (0, None)
    assert words in capsys.readouterr().err + str(stopped.value)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(SystemExit, match=r"nowhere\.jsonl"):
        main(["nowhere.jsonl"])


def test_it_runs_as_a_module_without_settings(tmp_path, monkeypatch, capsys):
    file = tmp_path / "table.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([GOOD, row()]))
    done = subprocess.run(
        [sys.executable, "-m", "leaderboard.dynascore", str(file)],
        cwd=ROOT,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line["model"] for line in json.loads(done.stdout)["tasks"]["nli"]["rows"]] == ["A", "B"]
    monkeypatch.setattr(sys, "argv", ["dynascore", str(file)])
    runpy.run_path(str(ROOT / "leaderboard" / "dynascore.py"), run_name="__main__")
    assert json.loads(capsys.readouterr().out) == json.loads(done.stdout)
