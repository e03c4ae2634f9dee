"""`dynabench leaderboard`, `compare` and `data`."""

import re
from pathlib import Path

import httpx
import pytest

from dynabench.client.commands import main
from tests.unit.client.commands.conftest import ID, RESULTS, refusal


def test_a_leaderboard_by_ones_own_weights(server, capsys):
    cell, sure = {"value": 61.5, "low": None, "high": None}, {"low": 58.123, "high": 64.0}
    server.answers["GET /tasks/nli/leaderboard/"] = {
        "metrics": [{"name": "accuracy"}, {"name": "memory"}],
        "sets": [
            {"name": "round-1", "version": 2, "is_provisional": True, "judged": 3, "to_judge": 9},
            {"name": "round-2", "version": 1, "is_provisional": True, "counts": False},
        ],
        "rows": [
            {
                "rank": "1",
                "model": "a",
                "dynascore": {**cell, **sure},
                "metrics": {"accuracy": cell},
            },
            {"rank": "", "model": "b", "dynascore": {**cell, "value": None}, "metrics": {}},
        ],
    }
    weights = ["--weights", "accuracy=4,memory=0.5", "--datasets", "round-1=5", "--mine"]
    weights += ["--mode", "classic"]
    assert main(["leaderboard", "nli", *weights]) == 0
    asked = dict(server.asked[-1].url.params)
    assert asked == {"w_accuracy": "4.0", "w_memory": "0.5", "d_round-1": "5.0", "mine": "1"} | {
        "mode": "classic"
    }
    first, second, note = capsys.readouterr().out.splitlines()[1:]
    assert "round-1 v2 is provisional, 3 of 9 judged" in note
    assert re.split("  +", first.strip()) == ["1", "a", "61.50", "58.12 to 64.00", "61.50", "-"]
    assert second.split() == ["not", "run", "b", *"----"]


def test_a_score_that_is_a_range_is_shown_from_its_worst_case_to_its_best(server, capsys):
    score = {"value": None, "low": 38.1, "high": 60.0, "least": 40.9, "most": 58.25}
    row = {"rank": "1–4", "model": "file", "dynascore": score, "metrics": {}}
    server.answers["GET /tasks/nli/leaderboard/"] = {
        "metrics": [], "sets": [], "rows": [{**row, "missing": ["memory (uploaded)"]}],
    }  # fmt: skip
    assert main(["leaderboard", "nli"]) == 0
    _, line, note = capsys.readouterr().out.splitlines()
    assert re.split("  +", line.strip()) == [
        *("1–4", "file", "40.90 to 58.25", "38.10 to 60.00"),
    ]
    assert "memory (uploaded)" in note
    found = {**RESULTS, "dynascore": None, "rank": "1–4", "notes": []}
    found |= {f"dynascore_{part}": score[part] for part in ("low", "high", "least", "most")}
    server.answers[f"GET /models/{ID}/results/"] = found
    assert main(["results", ID]) == 0
    assert "Dynascore 40.90 to 58.25 (38.10 to 60.00), rank 1–4" in capsys.readouterr().out


def test_what_is_rounded_is_said_to_be(server, capsys):
    """On a sealed set a score is one of a few steps: nobody shall take it for the exact one."""
    number = {"value": 0.7857, "low": 0.71, "high": 0.86, "n": 200}
    scores = {
        "hidden": {"accuracy": {**number, "is_rounded": True}},
        "open": {"accuracy": {**number, "is_rounded": False}},
        "older": {"accuracy": number},  # a server that does not say
    }
    server.answers[f"GET /models/{ID}/results/"] = {**RESULTS, "scores": scores, "notes": []}
    assert main(["results", ID]) == 0
    (note,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Note")]
    assert "hidden" in note
    assert "rounded" in note
    cell = {"value": 78.57, "low": None, "high": None}
    row = {"metric": "accuracy", "a": cell, "b": cell, "difference": cell, "better": ""}
    server.answers |= {
        f"GET /models/{ID}/": {"task": "nli"},
        "GET /tasks/nli/leaderboard/compare/": {
            "a": {"model": "one"},
            "b": {"model": "two"},
            "rows": [
                {**row, "set": "hidden", "version": 1, "is_rounded": True},
                {**row, "set": "open", "version": 1, "is_rounded": False},
            ],
        },
        "GET /tasks/nli/leaderboard/": {
            "metrics": [{"name": "accuracy"}],
            "sets": [
                {"name": "hidden", "version": 1, "is_sealed": True},
                {"name": "unweighted", "version": 1, "is_sealed": True, "counts": False},
                {"name": "open", "version": 1, "is_sealed": False},
            ],
            "rows": [],
        },
    }
    for asked in (["compare", ID, ID], ["leaderboard", "nli"]):
        assert main(asked) == 0
        said = capsys.readouterr().out.splitlines()
        (note,) = [line for line in said if line.startswith("Note")]
        assert "hidden" in note


def test_a_weight_of_what_is_not_there_is_a_mistake_of_usage(server, failing):
    server.answers["GET /tasks/nli/leaderboard/"] = refusal(
        422, "There is no metric 'foo'. Choose among: accuracy, memory.", "weights"
    )
    code, said = failing("leaderboard", "nli", "--weights", "foo=3")
    assert code == 2
    assert "accuracy, memory" in said


def test_two_models_beside_each_other(server, capsys):
    def number(value, low=None, high=None):
        return {"value": value, "low": low, "high": high}

    row = {"set": "control", "metric": "accuracy", "a": number(70), "b": number(50)}
    early = {"version": 2, "is_provisional": True, "judged": 132, "to_judge": 400}
    server.answers |= {
        f"GET /models/{ID}/": {"task": "nli"},
        "GET /tasks/nli/leaderboard/compare/": {
            "a": {"model": "one"},
            "b": {"model": "two"},
            "rows": [
                {
                    **row,
                    "difference": number(20, 15.5, 24.5),
                    "better": "a",
                    "p": 0.0123456,
                    "p_uncorrected": 0.00411522,
                    "method": "exact test",
                },
                {**row, "metric": "memory", "difference": number(None), "better": "untested"},
                {**row, "metric": "fairness", "difference": number(-1, -2, 1), "better": ""},
                {
                    **row,
                    **early,
                    "metric": "llm_judge",
                    "difference": number(None),
                    "better": "untested",
                },
            ],
            "judge": {"name": "careful", "agreement": {"is_calibrated": False}},
        },
    }
    assert main(["compare", ID, "b" + ID[1:]]) == 0
    *lines, method, note = capsys.readouterr().out.splitlines()
    assert "Holm" in method
    assert note.endswith("control v2 is provisional, 132 of 400 judged.")
    heads, *rows = (re.split("  +", line.strip()) for line in lines)
    cells = [[cell.strip() for cell in row if cell] for row in [heads, *rows]]
    judged = "llm_judge (careful: not calibrated)"
    assert cells == [
        [
            *("set", "metric", "one", "two", "difference", "95% interval", "better"),
            *("p", "corrected p", "test"),
        ],
        [
            *("control", "accuracy (%)", "70.00", "50.00", "20.00", "15.50 to 24.50", "one"),
            *("0.0041", "0.012", "exact test"),
        ],
        ["control", "memory (GiB)", "70.00", "50.00", "-", "-", "not tested", "-", "-", "-"],
        [
            *("control", "fairness (%)", "70.00", "50.00", "-1.00", "-2.00 to 1.00"),
            *("not clear", "-", "-", "-"),
        ],
        ["control", judged, "70.00", "50.00", "-", "-", "not tested", "-", "-", "-"],
    ]
    server.answers["GET /tasks/nli/leaderboard/compare/"] |= {"rows": []}
    assert main(["compare", ID, "b" + ID[1:]]) == 0
    assert "control" not in capsys.readouterr().out
    for ids in ((ID, "mine"), (ID,)):
        with pytest.raises(SystemExit, match="2"):
            main(["compare", *ids])
    assert "'mine' is not a model ID" in capsys.readouterr().err


def test_data_are_listed_and_downloaded(server, capsys):
    digest = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"  # of "hi\n"
    files = [{"name": "train.jsonl", "size": 3, "sha256": digest}]
    server.answers |= {
        "GET /tasks/nli/datasets/": [{"round": 1, "version": 2, "files": files}],
        "GET /tasks/nli/evaluation-sets/": [{"name": "control"}],
        "GET /tasks/nli/rounds/1/datasets/2/files/train.jsonl": httpx.Response(200, text="hi\n"),
        "GET /tasks/nli/evaluation-sets/control/inputs/": httpx.Response(200, text="{}\n"),
    }
    assert main(["data", "nli"]) == 0
    out = capsys.readouterr().out
    assert "1      2        train.jsonl" in out
    assert "Evaluation sets: control" in out
    assert "dynabench data nli --inputs" in out
    assert main(["data", "nli", "1", "--to", "here"]) == 0
    assert "here/nli-round1-v2" in capsys.readouterr().out
    assert Path("here/nli-round1-v2/train.jsonl").read_text() == "hi\n"
    assert main(["data", "nli", "--inputs", "control"]) == 0
    assert Path("nli-control.inputs.jsonl").read_text() == "{}\n"
    assert main(["data", "nli", "9"]) == 1
