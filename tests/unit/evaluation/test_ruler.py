"""One ruler: matrices, anchors, predictions for models that answered only the anchors."""

import csv
import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.ruler import main
from evaluation.scoring.ruler.anchors import choose_anchors, compute_covariances
from evaluation.scoring.ruler.linking import (
    compute_conformal_quantile,
    fit_correction,
    fit_ruler,
)
from evaluation.scoring.ruler.matrices import (
    AnswerMatrix,
    InvalidMatrix,
    ItemGroups,
    read_groups,
    read_matrix,
)
from evaluation.scoring.ruler.prediction import (
    MAX_FOLDS,
    TooFewModels,
    fit_predictor,
    leave_out,
    split_whole_models,
)
from evaluation.scoring.ruler.trial import (
    compute_rank_correlation,
    draw_new_models,
    name_whole_models,
    try_ruler,
)

VERSION_COUNT = 3


def simulate(*, families=12, items=300, dimensions=1, seed=1):
    """Return a matrix of related models, whose abilities differ widely, and groups a, b and c."""
    random = np.random.default_rng(seed)
    abilities = np.repeat(random.normal(0, 1.2, (families, dimensions)), VERSION_COUNT, axis=0)
    abilities = abilities + random.normal(0, 0.4, abilities.shape)
    loadings = random.dirichlet(np.ones(dimensions), items) * dimensions**0.5
    logits = abilities @ loadings.T * random.lognormal(0.3, 0.4, items)
    chance = 1 / (1 + np.exp(random.normal(0, 1, items) - logits))
    models = tuple(f"m{row // VERSION_COUNT}_{row}" for row in range(len(abilities)))
    matrix = AnswerMatrix(
        models, tuple(f"i{item}" for item in range(items)), random.random(chance.shape) < chance
    )
    return matrix, ItemGroups(("a", "b", "c"), np.repeat([0, 1, 2], items // 3))


def write_csv(path, rows):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def write_matrix(path, matrix):
    rows = [["model", *matrix.items]]
    for name, answers in zip(matrix.models, matrix.is_right, strict=True):
        rows.append([name, *answers.astype(int)])
    return write_csv(path, rows)


def write_groups(path, matrix, groups):
    lines = zip(matrix.items, (groups.names[group] for group in groups.group_of), strict=True)
    return write_csv(path, [["item", "group"], *lines])


@pytest.fixture
def simulated(tmp_path):
    matrix, groups = simulate()
    return (
        write_matrix(tmp_path / "answers.csv.gz", matrix),
        write_groups(tmp_path / "groups.csv", matrix, groups),
    )


class TestReading:
    def test_a_compressed_matrix_and_its_groups_are_read_as_written(self, simulated):
        matrix, groups = simulate()
        read = read_matrix(simulated[0])
        assert (read.models, read.items) == (matrix.models, matrix.items)
        assert (read.is_right == matrix.is_right).all()
        read_back = read_groups(simulated[1], read.items)
        assert read_back.names == groups.names
        assert (read_back.group_of == groups.group_of).all()

    def test_groups_keep_the_order_of_the_file_and_ignore_other_items(self, tmp_path):
        path = write_csv(
            tmp_path / "groups.csv",
            [
                ["item", "group"],
                ["x", "late"],
                ["b", "second"],
                [],
                ["a", "first"],
                ["b", "second"],
            ],
        )
        groups = read_groups(path, ["a", "b"])
        assert groups.names == ("second", "first")
        assert groups.group_of.tolist() == [1, 0]

    @pytest.mark.parametrize(
        ("rows", "place"),
        [
            ([], "first line"),
            ([["model"]], "first line"),
            ([["model", "a"]], "no model"),
            ([["model", "a"], ["m", "0.5"]], "line 2, item a"),
            ([["model", "a"], ["m", ""]], "line 2, item a"),
            ([["model", "a"], ["m", "1", "1"]], "line 2"),
            ([["model", "a", "a"], ["m", "1", "1"]], "item a"),
            ([["model", "a"], ["m", "1"], ["m", "0"]], "model m"),
            ([["model", "a"], ["", "1"]], "name of a model"),
        ],
    )
    def test_a_wrong_matrix_is_refused_with_its_place(self, tmp_path, rows, place):
        path = write_csv(tmp_path / "answers.csv", rows)
        with pytest.raises(InvalidMatrix, match=place):
            read_matrix(path)

    @pytest.mark.parametrize(
        ("rows", "place"),
        [
            ([["name", "group"], ["a", "x"]], "first line"),
            ([["item", "group"], ["a", "x"]], "item b"),
            ([["item", "group"], ["a", "x"], ["b", ""]], "line 3"),
            ([["item", "group"], ["a", "x"], ["a", "y"], ["b", "y"]], "line 3"),
            ([["item", "group"], ["a", "x"], ["b", "x"], ["c", "y"]], "two groups"),
        ],
    )
    def test_wrong_groups_are_refused_with_their_place(self, tmp_path, rows, place):
        path = write_csv(tmp_path / "groups.csv", rows)
        with pytest.raises(InvalidMatrix, match=place):
            read_groups(path, ["a", "b"])

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("missing.csv", None),
            ("cut.csv.gz", gzip.compress(b"model,a\nm,1\n")[:-9]),
            ("plain.csv.gz", b"model,a\n"),
            ("latin.csv", "modèle,a\nm,1\n".encode("latin-1")),
            ("open.csv", b'model,"a'),
        ],
    )
    def test_an_unreadable_file_is_refused(self, tmp_path, name, content):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidMatrix, match=name):
            read_matrix(tmp_path / name)


class TestAnchors:
    @settings(max_examples=25, deadline=None)
    @given(count=st.integers(10, 200), seed=st.integers(0, 1000))
    def test_anchors_are_distinct_items_of_earlier_groups(self, count, seed):
        matrix, groups = simulate()
        anchors = choose_anchors(matrix.is_right, groups, count, np.random.default_rng(seed))
        assert len(set(anchors.tolist())) == count
        assert (groups.group_of[anchors] < 2).all()

    @pytest.mark.parametrize("count", [9, 201])
    def test_a_number_of_anchors_that_cannot_be_chosen_is_refused(self, count):
        matrix, groups = simulate()
        with pytest.raises(ValueError, match="200"):
            choose_anchors(matrix.is_right, groups, count, np.random.default_rng(1))

    def test_half_of_the_anchors_tell_models_apart_at_every_level(self):
        matrix, groups = simulate()
        anchors = choose_anchors(matrix.is_right, groups, 50, np.random.default_rng(1))
        telling = compute_covariances(matrix.is_right, groups)
        assert telling[anchors].mean() > telling[:200].mean() * 1.3
        shares = matrix.is_right.mean(axis=0)
        assert shares[anchors].min() < np.quantile(shares[:200], 0.1)
        assert shares[anchors].max() > np.quantile(shares[:200], 0.9)

    def test_a_group_in_which_all_score_the_same_counts_nothing(self):
        is_right = np.array([[1, 0, 1, 1], [1, 1, 1, 1]], dtype=bool)
        groups = ItemGroups(("same", "other"), np.array([0, 1, 0, 1]))
        assert compute_covariances(is_right, groups).tolist() == [0.0, 0.25, 0.0, 0.0]


class TestPrediction:
    def test_a_block_is_left_out_as_if_it_was_never_there(self):
        random = np.random.default_rng(1)
        columns, shares = random.random((12, 2)), random.random((12, 1))
        fold = np.arange(12) < 3
        smoother = columns @ np.linalg.pinv(columns)
        without = columns[fold] @ np.linalg.pinv(columns[~fold]) @ shares[~fold]
        assert np.allclose(leave_out(smoother, shares, [fold, ~fold])[fold], shares[fold] - without)

    def test_versions_of_one_model_are_left_out_together(self):
        names = [f"m{row // 3}" for row in range(3 * (MAX_FOLDS + 5))]
        folds = split_whole_models(names)
        assert len(folds) == MAX_FOLDS
        assert np.sum(folds, axis=0).tolist() == [1] * len(names)
        for fold in folds:
            inside = {name for name, out in zip(names, fold, strict=True) if out}
            assert fold.sum() == 3 * len(inside)

    @pytest.mark.parametrize("names", [["a", "b", "c", "d"], ["a", "b", "c"] * 10])
    def test_too_few_models_are_refused(self, names):
        with pytest.raises(TooFewModels):
            split_whole_models(names)

    def test_a_share_that_is_a_line_in_the_anchors_is_found_exactly(self):
        answers = np.random.default_rng(1).random((30, 40)) < np.linspace(0.1, 0.9, 30)[:, None]
        shares = (0.2 + 0.5 * answers.mean(axis=1))[:, None]
        predictor = fit_predictor(answers, shares, split_whole_models([str(i) for i in range(30)]))
        errors = np.abs(predictor.predict(answers) - shares)
        assert errors.max() < 0.02

    def test_models_that_all_answer_alike_are_predicted_by_their_mean(self):
        answers = np.ones((20, 30), dtype=bool)
        shares = np.linspace(0.4, 0.6, 20)[:, None]
        predictor = fit_predictor(answers, shares, split_whole_models([str(i) for i in range(20)]))
        assert predictor.predict(answers[:1])[0, 0] == pytest.approx(0.5, abs=0.01)

    def test_a_model_like_no_known_one_is_more_remote(self):
        matrix, groups = simulate()
        answers = matrix.is_right[:, :100]
        predictor = fit_predictor(
            answers,
            groups.compute_shares(matrix.is_right),
            split_whole_models(name_whole_models(matrix.models, True)),
        )
        strange = predictor.compute_remoteness(~answers[:1])[0]
        assert strange > predictor.compute_remoteness(answers).max()


class TestCorrection:
    def test_few_models_hardly_move_the_slope_and_many_do(self):
        random = np.random.default_rng(1)
        few, many = random.normal(0.5, 0.02, 20), random.normal(0.5, 0.2, 400)
        slopes = []
        for predicted in (few, many):
            shares = 1.2 * predicted - 0.1 + random.normal(0, 0.02, len(predicted))
            slopes.append(fit_correction(predicted, shares)[1])
        assert abs(slopes[0] - 1) < 0.1
        assert slopes[1] == pytest.approx(1.2, abs=0.02)

    def test_one_odd_model_hardly_moves_the_line(self):
        predicted = np.linspace(0.3, 0.7, 60)
        shares = predicted + np.random.default_rng(1).normal(0, 0.01, 60)
        usual = fit_correction(predicted, shares)
        shares[-1] += 0.4
        odd = fit_correction(predicted, shares)
        assert odd == pytest.approx(usual, abs=0.02)


class TestRuler:
    @pytest.mark.parametrize("dimensions", [1, 4])
    def test_it_errs_less_than_half_as_much_as_the_mean_of_known_models(self, dimensions):
        coverages = []
        for seed in (1, 2):
            matrix, groups = simulate(families=18, dimensions=dimensions, seed=seed)
            accuracy = try_ruler(
                matrix, groups, anchor_count=60, new_share=0.33, seed=seed, is_by_prefix=True
            )
            shares = groups.compute_shares(matrix.is_right)[:, 2]
            assert accuracy["c"].mae_points < 50 * np.abs(shares - shares.mean()).mean()
            assert accuracy["c"].spearman > 0.85
            coverages += [accuracy[name].coverage95 for name in groups.names]
        # With 36 known models the quantile is the largest error, which may hold always.
        assert np.mean(coverages) >= 0.9

    def test_a_model_is_predicted_by_itself_as_among_others(self):
        matrix, groups = simulate()
        ruler = fit_ruler(
            matrix.is_right, groups, name_whole_models(matrix.models, True), 40, seed=3
        )
        answers = matrix.is_right[:5, ruler.anchors]
        together, alone = ruler.predict(answers), ruler.predict(answers[2:3])
        assert alone.shares[0] == pytest.approx(together.shares[2])
        assert (together.low <= together.shares).all()
        assert (together.shares <= together.high).all()
        assert 0 <= together.low.min() <= together.high.max() <= 1
        # An interval as wide as the models' shares themselves would say nothing.
        shares = groups.compute_shares(matrix.is_right)
        widths = (together.high - together.low).mean(axis=0)
        assert (widths < 0.7 * np.ptp(shares, axis=0)).all()

    def test_hidden_answers_of_new_models_change_no_prediction(self):
        """Only the anchors of new models are read: others may be anything."""
        matrix, groups = simulate()
        known = name_whole_models(matrix.models, True)
        ruler = fit_ruler(matrix.is_right, groups, known, 40, seed=1)
        hidden = np.setdiff1d(np.arange(300), ruler.anchors)
        changed = matrix.is_right.copy()
        changed[:, hidden] = ~changed[:, hidden]
        before = ruler.predict(matrix.is_right[:, ruler.anchors])
        after = ruler.predict(changed[:, ruler.anchors])
        assert (before.shares == after.shares).all()


class TestTrial:
    def test_versions_of_one_model_are_new_together(self):
        names = name_whole_models(("a_1", "a_best", "b_x_1", "b_x_2", "lone", "_1"), True)
        assert names == ["a", "a", "b_x", "b_x", "lone", "_1"]
        is_new = draw_new_models(names, 0.5, np.random.default_rng(1))
        assert len({name for name, new in zip(names, is_new, strict=True) if new}) == 2
        assert is_new[0] == is_new[1]
        assert is_new[2] == is_new[3]

    def test_each_row_is_a_model_without_prefixes(self):
        assert name_whole_models(("a_1", "a_2"), False) == ["a_1", "a_2"]

    @pytest.mark.parametrize(
        ("left", "right", "correlation"),
        [
            ([1.0, 2.0, 3.0], [1.0, 4.0, 9.0], 1.0),
            ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], -1.0),
            ([1.0, 1.0, 2.0], [1.0, 2.0, 3.0], 0.75**0.5),
            ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], None),
            ([], [], None),
        ],
    )
    def test_rank_correlations_share_ranks_of_ties(self, left, right, correlation):
        computed = compute_rank_correlation(np.array(left), np.array(right))
        assert computed == (correlation and pytest.approx(correlation))


def _is_hard(row):
    return row["difficulty"] != "" and float(row["difficulty"]) > 0.5


class TestProgram:
    def test_it_prints_one_object(self, simulated, capsys):
        matrix, groups = map(str, simulated)
        command = [matrix, "--groups", groups, "--anchors", "40", "--new", "0.33", "--seed", "2"]
        assert main([*command, "--new-by", "PREFIX", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed.keys() == {"models", "items", "groups", "seconds"}
        assert (printed["models"], printed["items"]) == (36, 300)
        assert list(printed["groups"]) == ["a", "b", "c"]
        assert printed["groups"]["c"].keys() == {"mae_points", "spearman", "coverage95"}
        assert main(command) == 0
        assert len(capsys.readouterr().out.splitlines()) == 4

    def test_it_writes_a_line_for_each_item(self, simulated, tmp_path):
        matrix, groups = map(str, simulated)
        path = tmp_path / "items.csv"
        command = [matrix, "--groups", groups, "--anchors", "40", "--items", str(path)]
        assert main(command) == 0
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        answers = read_matrix(simulated[0])
        assert [row["item"] for row in rows] == list(answers.items)
        assert {row["group"] for row in rows} == {"a", "b", "c"}
        # Of the items that have a difficulty, the harder ones are answered rightly less often.
        shares = answers.is_right.mean(axis=0)
        hard = [share for share, row in zip(shares, rows, strict=True) if _is_hard(row)]
        assert np.mean(hard) < np.mean(shares)
        # What all or none answer rightly tells nothing.
        for share, row in zip(shares, rows, strict=True):
            assert (row["discrimination"] == "") == (share in (0, 1))
        assert main([*command[:-1], str(tmp_path / "none" / "items.csv")]) == 2

    def test_the_same_seed_prints_the_same(self, simulated, capsys):
        matrix, groups = map(str, simulated)
        printed = []
        for seed in ("1", "1", "2"):
            main([matrix, "--groups", groups, "--anchors", "40", "--seed", seed, "--json"])
            printed.append(json.loads(capsys.readouterr().out)["groups"])
        assert printed[0] == printed[1] != printed[2]

    def test_input_that_cannot_be_used_ends_with_2(self, simulated, tmp_path, capsys):
        matrix, groups = map(str, simulated)
        missing = str(tmp_path / "none.csv")
        for command in (
            [missing, "--groups", groups],
            [matrix, "--groups", missing],
            [matrix, "--groups", groups, "--anchors", "201"],
            [matrix, "--groups", groups, "--anchors", "40", "--new", "0.9"],
        ):
            assert main(command) == 2
            streams = capsys.readouterr()
            assert not streams.out
            assert "Traceback" not in streams.err

    @pytest.mark.parametrize(
        "option", [["--new", "1"], ["--new", "x"], ["--seed", "-1"], ["--new-by", "suffix"]]
    )
    def test_wrong_options_are_refused(self, simulated, option):
        matrix, groups = map(str, simulated)
        with pytest.raises(SystemExit) as ended:
            main([matrix, "--groups", groups, *option])
        assert ended.value.code == 2


@settings(max_examples=50, deadline=None)
@given(
    count=st.integers(19, 200),
    level=st.sampled_from([0.5, 0.8, 0.9, 0.95]),
)
def test_a_new_error_is_below_the_conformal_quantile_with_at_least_its_chance(count, level):
    """Of n + 1 errors in any order, each is equally often the new one: counted, not drawn."""
    errors = np.arange(count + 1.0)
    below = [
        new <= compute_conformal_quantile(np.delete(errors, place)[:, None], level)[0]
        for place, new in enumerate(errors)
    ]
    # One in n + 1 more at most, because a place is a whole number.
    assert level - 1e-9 <= np.mean(below) < level + 1 / (count + 1) + 1e-9


def test_too_few_errors_for_the_level_give_the_largest():
    assert compute_conformal_quantile(np.array([[3.0, 1.0], [1.0, 2.0]]), 0.95).tolist() == [3, 2]


def test_a_model_left_out_does_not_choose_the_line_that_corrects_it():
    """One odd model must not make its own error small: its row is corrected by the others' line."""
    matrix, groups = simulate(families=8)
    is_right = matrix.is_right.copy()
    whole = name_whole_models(matrix.models, is_by_prefix=True)
    before = fit_ruler(is_right, groups, whole, 30, 1)
    # A family that is right only on the last group, which gives no anchors.
    is_right[:VERSION_COUNT, groups.group_of == 2] = True
    after = fit_ruler(is_right, groups, whole, 30, 1)
    assert after.even_half_widths[2] > before.even_half_widths[2] + 0.1
