"""The anchored score: its rule, what holds of every board, the shipped pools, the command."""

import json
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.seeds import OFFICIAL_TASKS_FOLDER
from leaderboard.board.presets import FULL_WEIGHT, PRESETS
from leaderboard.dynascore import main
from leaderboard.ranking.anchored import (
    BASELINES,
    Anchors,
    AnchorsError,
    Scale,
    build_plain_anchors,
    compute_anchored_points,
    compute_anchors,
    score_on_anchors,
)
from leaderboard.ranking.dynascore import WEIGHTS
from leaderboard.ranking.pools import build_plain_pool, read_shipped_pool
from tasks.config.loading import load_config
from tests.support.score_tables import METRICS, table

POOL = table(
    {
        "majority": (40, 9000, 1, 100, 100),
        "random": (30, 8000, 1, 50, 50),
        "words": (60, 1000, 1, 80, 70),
        "encoder": (80, 10, 4, 90, 60),
    }
)
ANCHORS = compute_anchors(POOL, "perf", METRICS)
PLAIN = build_plain_anchors("perf", 25.0, METRICS)
shares, costs = st.integers(0, 100), st.integers(0, 2000)
row = st.tuples(shares, costs, st.integers(0, 40), shares, shares)
boards = st.lists(row, min_size=1, max_size=8).map(
    lambda rows: table({f"m{n}": line for n, line in enumerate(rows)})
)
weights = st.fixed_dictionaries({m: st.integers(0, 8) for m in METRICS}).filter(
    lambda given: any(given.values())
)


def scores(rows, given_weights=WEIGHTS, anchors=ANCHORS):
    return {one.model: one.dynascore for one in score_on_anchors(anchors, given_weights, rows)}


def test_anchors_are_the_best_baseline_and_what_is_better_than_it():
    assert (
        Anchors(
            "perf",
            {
                "perf": Scale(40, 100),
                "throughput": Scale(1, 1000, is_ratio=True),
                "memory": Scale(40, 1, is_ratio=True),
                "fairness": Scale(80, 100),
                "robustness": Scale(60, 100),
            },
        )
        == ANCHORS
    )


def test_a_score_by_hand():
    """q = 1/2; places 2/3 (100 of 1 to 1000), 1/2 (√40 of 40 to 1), 1/2 (90), 1 (100)."""
    found = scores(table({"A": (70, 100, 40**0.5, 90, 100)}))
    assert found == {"A": pytest.approx(100 * 0.5 * (4 + 2 / 3 + 0.5 + 0.5 + 1) / 8)}


def test_values_beyond_the_anchors_clamp():
    best = table({"A": (100, 10**9, 0, 100, 100), "B": (0, 0, 10**9, 0, 0)})
    assert scores(best) == {"A": 100, "B": 0}


def test_what_was_not_measured_leaves_a_range_and_no_main_metric_no_score():
    rows = table({"A": (70, None, 40**0.5, 90, 100), "B": (None, 100, 2, 90, 100)})
    first, last = score_on_anchors(ANCHORS, WEIGHTS, rows)
    assert first.least == pytest.approx(100 * 0.5 * (4 + 0.5 + 0.5 + 1) / 8)
    assert first.most == pytest.approx(100 * 0.5 * (4 + 1 + 0.5 + 0.5 + 1) / 8)
    assert (first.dynascore, first.rank, "throughput" in first.note) == (None, 1, True)
    assert (last.dynascore, last.rank, "perf" in last.note) == (None, None, True)
    assert (last.least, last.most) == (None, None)


def test_ranks_are_given_where_the_order_is_known():
    rows = {
        "whole": (70, 1000, 2, 90, 100),
        "open": (70, None, 2, 90, 100),
        "worse": (45, 10, 4, 80, 60),
        "nothing": (40, None, None, None, None),  # no better than the baseline: 0 in any case
    }
    found = {one.model: one for one in score_on_anchors(ANCHORS, WEIGHTS, table(rows))}
    assert {name: one.rank for name, one in found.items()} == {
        "whole": 1, "open": None, "worse": 3, "nothing": 4,
    }  # fmt: skip
    assert (found["nothing"].dynascore, found["nothing"].least) == (0, None)
    alone = {name: one for name, one in rows.items() if name != "whole"}
    (first, *_) = score_on_anchors(ANCHORS, WEIGHTS, table(alone))
    assert (first.model, first.dynascore, first.rank) == ("open", None, 1)


def test_a_metric_in_which_the_pool_does_not_differ_is_left_out():
    pool = {name: {**line, "memory": 1.0} for name, line in POOL.items()}
    anchors = compute_anchors(pool, "perf", METRICS)
    assert "memory" not in anchors.scales
    assert [notice.partition(" ")[0] for notice in anchors.notices] == ["memory"]
    rows = table({"A": (70, 1000, 2, 100, 100)})
    assert scores(rows, anchors=anchors) == {"A": pytest.approx(50)}


def test_only_weight_on_what_has_no_anchors_gives_no_score():
    only = {**dict.fromkeys(METRICS, 0), "memory": 1}
    anchors = Anchors("perf", {"perf": Scale(40, 100)})
    (one,) = score_on_anchors(anchors, only, table({"A": (70, 100, 2, 90, 100)}))
    assert (one.dynascore, bool(one.note)) == (None, True)


@pytest.mark.parametrize("pool", [{}, table({"majority": (100, 1, 1, 1, 1)})])
def test_pools_that_anchor_nothing(pool):
    with pytest.raises(AnchorsError):
        compute_anchors(pool, "perf", METRICS)


def test_without_a_named_baseline_the_worst_model_is_it():
    pool = {f"model {name}": line for name, line in POOL.items()}
    assert compute_anchors(pool, "perf", METRICS).scales["perf"].low == 30


def test_points_add_up_in_any_shape_and_unknown_stays_unknown():
    values = {m: np.full((2, 3), 70.0) for m in METRICS}
    values["perf"][1, 2] = nan
    total = sum(compute_anchored_points(ANCHORS, WEIGHTS, values).values())
    assert total.shape == (2, 3)
    assert np.isnan(total).tolist() == [[False] * 3, [False, False, True]]


@given(boards, weights)
def test_scores_are_from_0_to_100(rows, given_weights):
    assert all(0 <= score <= 100 + 1e-9 for score in scores(rows, given_weights).values())


@given(boards, row, weights)
def test_no_further_model_changes_a_score_or_the_order(rows, new, given_weights):
    before = score_on_anchors(ANCHORS, given_weights, rows)
    after = score_on_anchors(ANCHORS, given_weights, {**table({"new": new}), **rows})
    rest = [one for one in after if one.model != "new"]
    assert [(one.model, one.dynascore) for one in rest] == [
        (one.model, one.dynascore) for one in before
    ]


@given(boards, row, weights)
def test_without_reference_models_the_score_is_as_sure(rows, new, given_weights):
    found = scores(rows, given_weights, PLAIN)
    more = scores({**rows, **table({"new": new})}, given_weights, PLAIN)
    assert {name: more[name] for name in found} == found
    chance = scores(table({"chance": (25, *new[1:])}), given_weights, PLAIN)
    if any(given_weights[name] for name in PLAIN.scales):
        assert all(0 <= score <= 100 for score in found.values())
        assert chance == {"chance": 0}
    else:  # of weights on costs alone, which have no scale
        assert {*found.values()} == {None}


@pytest.mark.parametrize(
    ("main", "labels", "chance"),
    [("accuracy", 4, 25), ("macro_f1", 0, 0), ("matthews_correlation", 2, 0), ("bleu", 0, 0)],
)
def test_what_knows_nothing_has_the_chance_of_its_labels(main, labels, chance):
    assert build_plain_pool(main, labels).rows == {"chance": {main: chance}}
    assert build_plain_pool(main, labels).is_plain
    assert not build_plain_pool(main, labels).has_costs


@given(row, st.tuples(*[st.integers(0, 40)] * 5), weights)
def test_a_model_no_better_in_anything_never_ranks_above(above, less, given_weights):
    signs = (-1, -1, 1, -1, -1)
    below = [v + sign * step for v, sign, step in zip(above, signs, less, strict=True)]
    rows = table({"above": above, "below": [max(0, value) for value in below]})
    ranks = {one.model: one.rank for one in score_on_anchors(ANCHORS, given_weights, rows)}
    assert ranks["above"] <= ranks["below"]


@given(row, st.sets(st.sampled_from(METRICS[1:])), weights)
def test_the_range_of_what_was_not_measured_holds_the_score(line, unmeasured, given_weights):
    whole = table({"A": line})
    part = {"A": {**whole["A"], **dict.fromkeys(unmeasured)}}
    (found,), score = (
        score_on_anchors(ANCHORS, given_weights, part),
        scores(whole, given_weights)["A"],
    )
    if found.least is None:
        assert found.dynascore == pytest.approx(score)
    else:
        assert found.least - 1e-8 <= score <= found.most + 1e-8


@given(boards, weights, st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_units_of_speed_and_memory_do_not_matter(rows, given_weights, speed, memory):
    def scaled(some):
        return {
            name: {
                **line,
                "throughput": line["throughput"] * speed,
                "memory": line["memory"] * memory,
            }
            for name, line in some.items()
        }

    other = compute_anchors(scaled(POOL), "perf", METRICS)
    assert scores(scaled(rows), given_weights, other) == pytest.approx(
        scores(rows, given_weights), abs=1e-6
    )


@given(boards, weights, st.integers(1, 100))
def test_weights_are_shares(rows, given_weights, times):
    more = {name: weight * times for name, weight in given_weights.items()}
    assert scores(rows, more) == pytest.approx(scores(rows, given_weights))


POOLED = {
    path.parent.name: load_config(path.read_text())
    for path in OFFICIAL_TASKS_FOLDER.glob("*/task.yaml")
}
COSTLESS = ["throughput", "memory"]
LEFT_OUT = {"hate-speech": ["fairness"], "secret": COSTLESS, "grounded": COSTLESS}
"""A set that names too few people, and models that answer in conversations."""
PRESET_WEIGHTS = {
    title: {"main": FULL_WEIGHT, **dict.fromkeys(others, FULL_WEIGHT)}
    for title, others in PRESETS.items()
} | {"Owner’s weights": {"main": 4, "throughput": 1, "memory": 1, "fairness": 1, "robustness": 1}}


@pytest.mark.parametrize("code", POOLED)
def test_a_shipped_pool_has_its_models_and_spans_every_scale(code):
    pool = read_shipped_pool(code)
    assert len(pool.rows) >= 6
    assert len({*BASELINES} & pool.rows.keys()) >= 2
    metrics = POOLED[code].metrics
    assert pool.main == metrics.main
    anchors = compute_anchors(pool.rows, pool.main, metrics.names)
    assert [one.partition(" ")[0] for one in anchors.notices] == LEFT_OUT.get(code, [])


REAL = {
    "DistilBERT": (0.21, 0.66),
    "BERT-base": (0.12, 0.83),
    "BERT-large": (0.052, 1.69),
    "Llama with a thousand million parameters": (0.0086, 4.56),
}
"""Speed as a share of that of two layers of MiniLM, and GiB: measured with weights by chance."""


@pytest.mark.parametrize("code", [code for code in POOLED if code not in ("secret", "grounded")])
def test_speed_and_memory_tell_real_models_apart(code):
    pool = read_shipped_pool(code)
    scales = compute_anchors(pool.rows, pool.main, POOLED[code].metrics.names).scales
    smallest = {
        cost: next(row[cost] for name, row in pool.rows.items() if name == "two-layers")
        for cost in COSTLESS
    }
    speeds = np.array([smallest["throughput"] * speed for speed, _ in REAL.values()])
    sizes = np.array([memory for _, memory in REAL.values()])
    for found in (
        scales["throughput"].compute_positions(speeds),
        scales["memory"].compute_positions(sizes),
    ):
        assert (np.diff(found) < -0.01).all()
        assert found[-1] > 0.05


@pytest.mark.parametrize("code", POOLED)
@pytest.mark.parametrize("preset", PRESET_WEIGHTS)
@given(costs=st.tuples(st.floats(1e-3, 1e9), st.floats(1e-6, 1e3)), better=shares)
def test_a_constant_or_random_model_ranks_below_every_trained_one(code, preset, costs, better):
    """However fast, small and steady it is."""
    pool = read_shipped_pool(code)
    given_weights = {
        pool.main if name == "main" else name: weight
        for name, weight in PRESET_WEIGHTS[preset].items()
    }
    baselines = {*BASELINES} & pool.rows.keys()
    useless = {
        name: {**pool.rows[name], "throughput": costs[0], "memory": costs[1],
               "fairness": better, "robustness": better}
        for name in baselines
    }  # fmt: skip
    found = scores(
        {**pool.rows, **useless},
        given_weights,
        compute_anchors(pool.rows, pool.main, given_weights),
    )
    trained = min(found[name] for name in pool.rows if name not in baselines)
    assert max(found[name] for name in baselines) < trained


def test_a_task_of_a_strange_name_has_no_pool():
    assert read_shipped_pool("../../nli") is None
    assert read_shipped_pool("other") is None


@pytest.fixture
def run(tmp_path, capsys):
    """What the command prints of rows; `anchors` are written to a file of their own."""

    def scored_by(rows, *options, anchors=None):
        for name, some in (("table.jsonl", rows), ("anchors.jsonl", anchors or [])):
            lines = [json.dumps(one) + "\n" for one in some]
            (tmp_path / name).write_text("".join(lines))
        more = ["--anchors", str(tmp_path / "anchors.jsonl")] if anchors else []
        main([str(tmp_path / "table.jsonl"), "--mode", "anchored", *more, *options])
        out, err = capsys.readouterr()
        return json.loads(out), err

    return scored_by


def lines_of(task, rows):
    return [{"task": task, "model": name, **line} for name, line in rows.items()]


@pytest.mark.parametrize("code", POOLED)
def test_the_command_scores_by_the_task_s_pool(run, code):
    given_rows = lines_of(code, table({"A": (90, 100, 0.4, 95, 96), "B": (0, 9999, 0.1, 100, 100)}))
    found, err = run(given_rows)
    assert found["mode"] == "anchored"
    assert found["tasks"][code]["rates"].keys() == set(METRICS)
    first, last = found["tasks"][code]["rows"]
    assert first.keys() == {"model", "dynascore", "rank", "low", "high"}
    assert (first["model"], last["dynascore"], last["rank"]) == ("A", 0, 2)
    assert 0 < first["dynascore"] <= 100
    measured = {"perf", *POOLED[code].metrics.names}
    told = [line.split()[1] for line in err.splitlines()]
    assert told == [m for m in METRICS if m in LEFT_OUT.get(code, []) or m not in measured]


def test_what_has_no_main_metric_has_no_score_in_any_draw(run):
    rows = lines_of("other", table({"A": (70, 100, 2, 90, 100), "B": (None, 100, 2, 90, 100)}))
    rows[0]["perf_se"] = 2
    found, _ = run(rows, anchors=lines_of("other", POOL))
    first, last = found["tasks"]["other"]["rows"]
    assert first["low"] < first["dynascore"] < first["high"]
    assert (last["dynascore"], last["low"]) == (None, None)


@pytest.mark.parametrize("unit", [1, 0.01])
def test_the_command_takes_anchors_from_a_file_in_either_unit(run, unit):
    def in_unit(rows):
        shares = ("perf", "fairness", "robustness")
        return {
            name: {**line, **{m: line[m] * unit for m in shares}} for name, line in rows.items()
        }

    rows = lines_of("other", in_unit(table({"A": (70, 100, 40**0.5, 90, 100)})))
    found, _ = run(rows, anchors=lines_of("other", POOL))
    other, _ = run(rows, anchors=lines_of("other", in_unit(POOL)))
    assert found == other
    (only,) = found["tasks"]["other"]["rows"]
    assert only["dynascore"] == pytest.approx(100 * 0.5 * (4 + 2 / 3 + 0.5 + 0.5 + 1) / 8)


def test_the_command_gives_intervals_within_the_scale(run):
    rows = [one | {"perf_se": 30} for one in lines_of("other", table({"A": (70, 100, 2, 90, 100)}))]
    (one,) = run(rows, anchors=lines_of("other", POOL))[0]["tasks"]["other"]["rows"]
    assert 0 <= one["low"] < one["dynascore"] < one["high"] <= 100


@pytest.mark.parametrize(
    ("options", "anchors", "named"),
    [
        ([], None, "--anchors"),
        ([], lines_of("nli", POOL), "--anchors"),
        ([], lines_of("other", table({"majority": (100, 1, 1, 1, 1)})), "--anchors"),
        (["--memory-budget", "0"], lines_of("other", POOL), "--memory-budget"),
        (["--min-gap", "1"], lines_of("other", POOL), "--min-gap"),
        (["--mode", "robust"], lines_of("other", POOL), "--anchors"),
    ],
)
def test_what_the_command_refuses(run, capsys, options, anchors, named):
    with pytest.raises(SystemExit) as stopped:
        run(lines_of("other", POOL), *options, anchors=anchors)
    assert stopped.value.code == 2
    assert named in capsys.readouterr().err
