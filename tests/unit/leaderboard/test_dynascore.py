"""Dynascore, classic and robust."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leaderboard.ranking.dynascore import (
    MEMORY_BUDGET,
    WEIGHTS,
    Interval,
    Rates,
    Rule,
    ScoredModel,
    compute_exchange_rates,
    find_order_changing_models,
    resample_scores,
    score_models,
)
from tests.support.score_tables import CLASSIC, METRICS, ROBUST, scores, table


def ranks(rule: Rule, rows, rates=None) -> dict[str, int | None]:
    return {
        row.model: row.rank
        for row in score_models(rule, rows, rates or compute_exchange_rates(rule, rows))
    }


FOUR = table({
    "A": (90, 10, 8, 95, 80),
    "B": (85, 20, 4, 93, 78),
    "C": (80, 40, 2, 90, 75),
    "D": (60, 100, 1, 88, 70),
})  # fmt: skip
# Ma et al. 2021, table 2; the last column is the Dynascore printed there.
NLI = {
    "DeBERTa": (69.54, 7.41, 5.71, 91.97, 75.70, 38.83),
    "RoBERTa": (69.07, 9.23, 4.82, 90.94, 74.82, 38.61),
    "ALBERT": (67.29, 9.60, 2.18, 89.94, 74.12, 37.72),
    "T5": (67.16, 7.10, 10.62, 91.89, 73.47, 37.53),
    "BERT": (64.82, 9.39, 4.13, 92.11, 66.38, 36.36),
    "Majority": (32.41, 77.33, 1.15, 100, 100, 22.78),
    "FastText": (31.29, 73.94, 2.20, 83.23, 69.14, 21.13),
}
SENTIMENT = {
    "DeBERTa": (76.07, 7.50, 4.80, 94.08, 79.21, 71.31),
    "RoBERTa": (73.74, 8.95, 4.14, 93.87, 77.81, 70.11),
    "T5": (73.20, 7.12, 9.06, 93.44, 77.99, 69.32),
    "ALBERT": (70.61, 10.24, 2.04, 93.34, 78.44, 68.73),
    "BERT": (68.71, 8.83, 6.04, 93.49, 72.75, 66.81),
    "Majority": (35.93, 35.14, 1.07, 100, 100, 57.94),
    "FastText": (53.32, 32.54, 1.69, 78.52, 65.82, 57.39),
}


class TestClassic:
    def test_the_example_worked_by_hand(self):
        rates = compute_exchange_rates(CLASSIC, FOUR)
        assert rates.values == pytest.approx(
            {
                "perf": 1,
                "throughput": 3,
                "memory": 5 / 12,
                "fairness": 11 / 30,
                "robustness": 5 / 12,
            }
        )
        assert (rates.pool, rates.notices) == (("A", "B", "C", "D"), ())
        found = score_models(CLASSIC, FOUR, rates)
        assert [row.model for row in found] == ["A", "B", "C", "D"]
        assert [row.rank for row in found] == [1, 2, 3, 4]
        printed = [104.203030, 102.037879, 99.048485, 89.666667]
        assert [row.dynascore for row in found] == pytest.approx(printed, abs=1e-6)

    @pytest.mark.parametrize("task", [NLI, SENTIMENT], ids=["nli", "sentiment"])
    def test_the_papers_table(self, task):
        rule = Rule("classic", budgets={"memory": 32})
        found = scores(rule, table({model: row[:5] for model, row in task.items()}))
        assert found == pytest.approx({model: row[5] for model, row in task.items()}, abs=0.1)
        assert [*found] == [*task]

    def test_a_hundredth_between_two_models_moves_every_score(self):
        """As BERT and T5 of the paper's hate speech table, with the gap above and below 1e-4."""

        def board(gap: float):
            rows = {model: row[:5] for model, row in NLI.items()}
            return table(rows | {"BERT": (67.16 - gap, *rows["BERT"][1:])})

        rule = {mode: Rule(mode, budgets={"memory": 32}) for mode in ("classic", "robust")}
        apart, close = board(0.01), board(0.006)
        classic = [scores(rule["classic"], one) for one in (apart, close)]
        assert all(abs(classic[0][m] - classic[1][m]) > 1.9 for m in NLI)
        assert compute_exchange_rates(rule["classic"], apart).values["memory"] > 100
        assert compute_exchange_rates(rule["classic"], close).values["memory"] < 14
        robust = [scores(rule["robust"], one) for one in (apart, close)]
        assert all(abs(robust[0][m] - robust[1][m]) < 0.05 for m in NLI)

    def test_a_wider_gap_leaves_the_pair_out(self):
        rows = table({"a": (80, 1), "b": (70, 2), "c": (69.99, 9)}, ("perf", "throughput"))
        rule = Rule("classic", {"perf": 1, "throughput": 1}, min_gap=0.01)
        assert compute_exchange_rates(rule, rows).values["throughput"] == pytest.approx(0.1)
        narrow = Rule("classic", {"perf": 1, "throughput": 1})
        assert compute_exchange_rates(narrow, rows).values["throughput"] == pytest.approx(350.05)

    def test_ties_in_perf_have_no_order(self):
        rows = {"a": (50, 1), "b": (50, 3), "c": (60, 9), "d": (40, 2)}
        rule = Rule("classic", {"perf": 1, "throughput": 1})
        found = compute_exchange_rates(rule, table(rows, ("perf", "throughput"))).values
        # Among equals the lesser is first: 2 → 1 by 10, 3 → 9 by 10.
        assert found["throughput"] == pytest.approx((0.1 + 0.6) / 2)
        swapped = rows | {"a": rows["b"], "b": rows["a"]}
        assert compute_exchange_rates(rule, table(swapped, ("perf", "throughput"))).values == found


XYZ = {"X": (85, 80), "Y": (84, 81.5), "Z": (80, 79)}
TWO = {"perf": 1, "robustness": 1}
SOCK_PUPPET = {"S": (79.9, 40)}


def two(rows):
    return table(rows, ("perf", "robustness"))


class TestRobust:
    def test_rates_are_medians_over_all_pairs(self):
        rates = compute_exchange_rates(ROBUST, FOUR)
        # throughput: 10/5, 30/10, 90/30, 20/5, 80/25, 60/20
        assert rates.values == pytest.approx(
            {
                "perf": 1,
                "throughput": 3,
                "memory": (0.4 + 7 / 30) / 2,
                "fairness": (0.4 + 7 / 30) / 2,
                "robustness": (0.4 + 1 / 3) / 2,
            }
        )
        assert [*scores(ROBUST, FOUR)] == ["A", "B", "C", "D"]

    def test_what_differs_by_noise_alone_has_no_rate(self):
        same = table({"a": (80, 100, 0.40, 90, 80), "b": (40, 300, 0.41, 95, 85)})
        rates = compute_exchange_rates(ROBUST, same)
        assert rates.values["memory"] is None
        assert "don't differ" in rates.notices[0]
        # Such a price would be 0.00025 GB a point, and 15.6 GB then worth thousands of points.
        assert max(scores(ROBUST, same).values()) < 1000
        other = table({"a": (80, 100, 2.4, 90, 80), "b": (40, 300, 0.4, 95, 85)})
        assert compute_exchange_rates(ROBUST, other).values["memory"] == pytest.approx(0.05)

    def test_a_model_worse_than_all_decides_the_winner_only_in_classic(self):
        rule = {mode: Rule(mode, TWO) for mode in ("classic", "robust")}
        before, after = two(XYZ), two(XYZ | SOCK_PUPPET)
        assert ranks(rule["classic"], before) == {"Y": 1, "X": 2, "Z": 3}
        assert ranks(rule["classic"], after) == {"X": 1, "Y": 2, "Z": 3, "S": 4}
        # What Y has more in robustness is just what X pays for it: the two are level.
        assert ranks(rule["robust"], before) == {"X": 1, "Y": 1, "Z": 3}
        assert ranks(rule["robust"], after) == {"X": 1, "Y": 1, "Z": 3, "S": 4}
        frozen = compute_exchange_rates(rule["classic"], before)
        assert ranks(rule["robust"], after, frozen) == {"Y": 1, "X": 2, "Z": 3, "S": 4}

    def test_only_models_that_none_dominates_are_the_pool(self):
        rates = compute_exchange_rates(Rule("robust", TWO), two(XYZ | SOCK_PUPPET))
        assert rates.pool == ("X", "Y")
        assert rates.values == {"perf": 1, "robustness": 1.5}

    def test_frozen_rates_score_who_comes_later(self):
        rates = compute_exchange_rates(ROBUST, FOUR)
        later = FOUR | table({"E": (99, 1000, 0.1, 20, 99)})
        assert compute_exchange_rates(ROBUST, later) != rates
        found = scores(ROBUST, later, rates)
        assert {model: found[model] for model in FOUR} == scores(ROBUST, FOUR)
        assert [*found] == ["E", *FOUR]

    def test_pairs_within_the_gap_say_nothing(self):
        rows = two({"a": (80, 50), "b": (79.6, 90), "c": (70, 95)})
        # Half a percent of 80 is 0.4, so a and b don't differ: 45/10 and 5/9.6 are left.
        usual = compute_exchange_rates(Rule("robust", TWO), rows)
        assert usual.values["robustness"] == pytest.approx((4.5 + 5 / 9.6) / 2)
        all_pairs = compute_exchange_rates(Rule("robust", TWO, min_gap=0), rows)
        assert all_pairs.values["robustness"] == pytest.approx(4.5)
        none = compute_exchange_rates(Rule("robust", TWO, min_gap=10), rows)
        assert none.values["robustness"] is None
        assert [notice.split()[0] for notice in none.notices] == ["robustness"]

    def test_known_standard_errors_decide_which_pairs_differ(self):
        rows = two({"a": (80, 50), "b": (79.6, 90), "c": (70, 95)})
        rule = Rule("robust", TWO)
        sure = compute_exchange_rates(rule, rows, {"a": 0.1, "b": 0.1, "c": 0.1})
        assert sure.values["robustness"] == pytest.approx(4.5)
        unsure = compute_exchange_rates(rule, rows, {"a": 5, "b": 5, "c": 1})
        assert unsure.values["robustness"] is None
        # Of a pair with one unknown error the usual gap decides.
        partly = compute_exchange_rates(rule, rows, {"a": 5, "b": None})
        assert partly == compute_exchange_rates(rule, rows)

    def test_where_most_are_equal_the_others_show_the_price(self):
        rows = table(
            {"a": (90, 8), "b": (80, 8), "c": (70, 8), "d": (60, 2), "e": (85, 8)},
            ("perf", "memory"),
        )
        rows = {model: row | {"throughput": -row["perf"]} for model, row in rows.items()}
        rule = Rule("robust", dict.fromkeys(("perf", "memory", "throughput"), 1))
        found = compute_exchange_rates(rule, rows)
        assert found.pool == tuple("abcde")
        assert found.values["memory"] == pytest.approx((6 / 20 + 6 / 25) / 2)

    def test_which_models_the_order_hangs_on(self):
        rows = two({"a": (90, 10), "b": (80, 60), "c": (60, 70), "z": (50, 5)})
        assert find_order_changing_models(Rule("robust", {"perf": 3, "robustness": 2}), rows) == [
            "c"
        ]
        assert find_order_changing_models(
            Rule("robust", {"perf": 3, "robustness": 2}), rows, top=1
        ) == ["c"]
        assert find_order_changing_models(Rule("robust", {"perf": 1, "robustness": 0}), rows) == []


both_modes = pytest.mark.parametrize("rule", [CLASSIC, ROBUST], ids=["classic", "robust"])


@both_modes
class TestEdges:
    def test_one_model_has_its_perf(self, rule):
        rows = {"A": FOUR["A"]}
        rates = compute_exchange_rates(rule, rows)
        assert rates.values == dict.fromkeys(METRICS, None) | {"perf": 1}
        assert len(rates.notices) == 4
        assert score_models(rule, rows, rates) == [ScoredModel("A", 90, 1)]

    def test_all_tied_in_perf_share_the_first_rank(self, rule):
        rows = {model: row | {"perf": 70} for model, row in FOUR.items()}
        assert ranks(rule, rows) == dict.fromkeys(FOUR, 1)
        assert set(scores(rule, rows).values()) == {70}

    @pytest.mark.parametrize("same", [0, 7, 0.1])
    def test_a_constant_metric_is_left_out(self, rule, same):
        rows = {model: row | {"fairness": same} for model, row in FOUR.items()}
        rates = compute_exchange_rates(rule, rows)
        assert rates.values["fairness"] is None
        assert [notice.split()[0] for notice in rates.notices] == ["fairness"]
        without = Rule(rule.mode, {m: w for m, w in WEIGHTS.items() if m != "fairness"})
        assert scores(rule, rows) == pytest.approx(scores(without, rows))

    def test_rounding_is_no_difference(self, rule):
        values = dict(zip(FOUR, (0.3, 0.1 + 0.2, 0.3, 0.6 / 2), strict=True))
        rows = {model: row | {"fairness": values[model]} for model, row in FOUR.items()}
        assert compute_exchange_rates(rule, rows).values["fairness"] is None

    def test_who_lacks_a_result_is_listed(self, rule):
        late = {"E": {"perf": 99, "memory": None, "throughput": 1}, "F": {}}
        found = score_models(rule, FOUR | late, compute_exchange_rates(rule, FOUR | late))
        assert found[:4] == score_models(rule, FOUR, compute_exchange_rates(rule, FOUR))
        assert found[4:] == [
            ScoredModel("E", None, None, "not run: memory, fairness, robustness"),
            ScoredModel("F", None, None, "not run: perf, throughput, memory, fairness, robustness"),
        ]

    def test_what_has_no_weight_need_not_be_run(self, rule):
        rows = FOUR | {"E": {"perf": 99, "throughput": 5}}
        light = Rule(rule.mode, dict.fromkeys(METRICS, 0) | {"perf": 1, "throughput": 1})
        rates = compute_exchange_rates(rule, FOUR)
        assert compute_exchange_rates(light, rows) == compute_exchange_rates(rule, rows) == rates
        assert ranks(light, rows)["E"] == 1

    def test_a_metric_that_nobody_has_is_left_out(self, rule):
        rows = {model: row | {"fairness": None} for model, row in FOUR.items()}
        rates = compute_exchange_rates(rule, rows)
        assert [notice.split()[0] for notice in rates.notices] == ["fairness"]
        assert None not in scores(rule, rows).values()

    def test_without_perf_nobody_is_scored(self, rule):
        rows = {model: row | {"perf": None} for model, row in FOUR.items()}
        found = score_models(rule, rows, compute_exchange_rates(rule, rows))
        assert [(row.dynascore, row.rank, row.note) for row in found] == [
            (None, None, "not run: perf")
        ] * 4

    def test_weight_on_nothing_but_what_has_no_rate_scores_nobody(self, rule):
        rows = {model: row | {"fairness": 7} for model, row in FOUR.items()}
        fair = Rule(rule.mode, dict.fromkeys(METRICS, 0) | {"fairness": 1})
        found = score_models(fair, rows, compute_exchange_rates(fair, rows))
        assert all(row.note for row in found)
        assert {row.rank for row in found} == {None}

    def test_nobody_has_no_scores(self, rule):
        assert score_models(rule, {}, compute_exchange_rates(rule, {})) == []

    def test_values_below_zero_are_values(self, rule):
        rows = table({"a": (-0.2, 4, 40, 1, 2), "b": (-0.1, 3, 20, 3, 1), "c": (-0.4, 9, 1, 1, 3)})
        found = scores(rule, rows)
        assert all(score is not None and math.isfinite(score) for score in found.values())

    def test_fractions_are_ranked_as_percent_are(self, rule):
        small = {m: {k: v / 100 for k, v in row.items()} for m, row in FOUR.items()}
        fractions = Rule(rule.mode, budgets={"memory": MEMORY_BUDGET / 100})
        expected = {model: score / 100 for model, score in scores(rule, FOUR).items()}
        assert scores(fractions, small) == pytest.approx(expected)

    def test_the_memory_budget_moves_all_alike(self, rule):
        wider = scores(Rule(rule.mode, budgets={"memory": 32}), FOUR)
        usual = scores(rule, FOUR)
        moved = [wider[model] - usual[model] for model in FOUR]
        rate = compute_exchange_rates(rule, FOUR).values["memory"]
        assert moved == pytest.approx([16 / 8 / rate] * 4)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"weights": {"perf": 0, "memory": 0}}, "at least one weight above 0"),
        ({"weights": {}}, "at least one weight above 0"),
        ({"weights": {"perf": -1}}, "weight of perf is -1"),
        ({"weights": {"perf": math.nan}}, "weight of perf is nan"),
        ({"weights": {"perf": math.inf}}, "weight of perf is inf"),
        ({"budgets": {"memory": math.inf}}, "budget must be a finite number"),
        ({"min_gap": -0.1}, "smallest gap is -0.1"),
        ({"min_gap": math.nan}, "smallest gap is nan"),
    ],
)
def test_numbers_without_sense_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Rule(**wrong)


class TestBootstrap:
    SHIFTS = [-9, -9, -2, 0, 2, 4, 6, 8]
    DRAWS = [
        {model: row | {"perf": row["perf"] + shift * (model == "B")} for model, row in FOUR.items()}
        for shift in SHIFTS
    ]

    def test_the_interval_holds_the_draws(self):
        rates = compute_exchange_rates(ROBUST, FOUR)
        found = resample_scores(ROBUST, FOUR, self.DRAWS, rates)
        score = scores(ROBUST, FOUR)
        assert found["A"] == Interval(score["A"], score["A"], 1, 2)
        low, high = np.quantile([0, *self.SHIFTS], (0.025, 0.975)) / 2
        assert found["B"].low == pytest.approx(score["B"] + low)
        assert found["B"].high == pytest.approx(score["B"] + high)
        assert (found["B"].rank_low, found["B"].rank_high) == (1, 3)

    def test_without_frozen_rates_those_of_the_table_hold_in_each_draw(self):
        frozen = resample_scores(CLASSIC, FOUR, self.DRAWS, compute_exchange_rates(CLASSIC, FOUR))
        assert resample_scores(CLASSIC, FOUR, self.DRAWS) == frozen
        assert compute_exchange_rates(CLASSIC, self.DRAWS[0]) != compute_exchange_rates(
            CLASSIC, FOUR
        )
        score = scores(CLASSIC, FOUR)
        assert all(each.low <= score[model] <= each.high for model, each in frozen.items())

    def test_who_is_not_run_has_none(self):
        rows = FOUR | {"E": {"perf": 1}}
        assert resample_scores(ROBUST, rows, [rows]).keys() == FOUR.keys()


def test_the_rules_load_neither_numpy_nor_django():
    names = [f"leaderboard.ranking.{name}" for name in ("dynascore", "ranks", "pareto")]
    names += ["leaderboard.dynascore", "leaderboard.rounds.progress"]
    code = f"import importlib, sys\nfor n in {names}: importlib.import_module(n)\n"
    code += "print('numpy' in sys.modules, 'django' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "False"]


def test_rates_can_be_kept_and_used_again():
    kept = compute_exchange_rates(ROBUST, FOUR)
    again = Rates({**kept.values}, kept.pool)
    assert score_models(ROBUST, FOUR, again) == score_models(ROBUST, FOUR, kept)
