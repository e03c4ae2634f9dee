"""What a URL asks of a leaderboard: links say all of it, forms say what was changed."""

from urllib.parse import parse_qs, parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.seeds import OFFICIAL_TASKS_FOLDER
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.presets import PRESETS, iter_presets
from leaderboard.board.query import (
    BoardRequest,
    build_sliders,
    build_typed_sliders,
    choose_changed_value,
    format_weight,
    read_former_weighting,
    read_request,
)
from leaderboard.ranking.weights import (
    METRIC_PREFIX,
    Weighting,
    WeightsError,
    build_opening_weights,
)
from tasks.config.loading import load_config

weights = st.floats(0, 8).filter(bool)
weightings = st.builds(
    lambda a, b, c: Weighting({"accuracy": a, "throughput": b}, {"round-1": c}),
    weights, weights, weights,
)  # fmt: skip
START = Weighting({"accuracy": 4.0, "throughput": 1 / 3}, {"round-1": 5.0})


def form(was, slider, box):
    return {
        f"{METRIC_PREFIX}{name}": [format_weight(each[name]) for each in (was, slider, box)]
        for name in was
    }


@given(weightings, weightings)
def test_a_link_leads_to_the_same_board(start, wanted):
    """To six digits, as in a URL; what looks like the rounded start is taken for it."""
    query = BoardRequest(start, wanted, {"sort": "-memory", "page": "3"}).link()
    found = read_request(parse_qs(query[1:]), start)
    assert found.options == {"sort": "-memory"}
    for name, weight in wanted.metrics.items():
        assert found.weighting.metrics[name] == pytest.approx(weight, rel=1e-5, abs=0.051)


def test_a_link_without_changes_names_no_weights():
    assert BoardRequest(START, START, {"sort": "model"}).link(sort="") == "?"
    assert BoardRequest(START, START, {}).link(open="x") == "?open=x"


def test_a_form_that_was_not_touched_keeps_the_unrounded_start():
    query = form(START.metrics, START.metrics, START.metrics)
    assert read_request(query, START).weighting == START
    assert read_former_weighting(query, START) == START
    assert read_former_weighting({"w_accuracy": ["2"]}, START) is None


def test_slider_or_box_whichever_was_moved():
    moved = {**START.metrics, "accuracy": 1.0}
    for slider, box in ((moved, START.metrics), (START.metrics, moved), (moved, moved)):
        query = form(START.metrics, slider, box)
        assert read_request(query, START).weighting.metrics == moved
        assert read_former_weighting(query, START) == START


def test_shares_in_words():
    found = build_sliders(METRIC_PREFIX, {"accuracy": 4.0, "throughput": 5.0})
    assert [(each.text, each.total, round(100 * each.share)) for each in found] == [
        ("4", "9", 44),
        ("5", "9", 56),
    ]
    assert {each.step for each in found} == {"1"}
    assert build_sliders(METRIC_PREFIX, START.metrics)[1].text == "0.3"
    assert {each.step for each in build_sliders(METRIC_PREFIX, START.metrics)} == {"0.1"}


def test_what_cannot_be_used_is_shown_as_it_was_typed():
    query = {"w_accuracy": ["4", "4", "lots"]}
    with pytest.raises(WeightsError):
        read_request(query, START)
    assert [each.text for each in build_typed_sliders(query, METRIC_PREFIX, START.metrics)] == [
        "lots",
        "0.3",
    ]
    assert choose_changed_value(["4"]) == "4"


@pytest.mark.parametrize(
    ("mode", "found"), [("classic", "classic"), ("anchored", "anchored"), ("", None), ("x", None)]
)
def test_modes(mode, found):
    assert BoardRequest(START, START, {"mode": mode}).mode == found


@pytest.mark.parametrize(
    ("field", "value"), [("mode", "x"), ("w_acuracy", "5"), ("d_round-9", "5")]
)
def test_what_the_board_does_not_have_is_refused(field, value):
    with pytest.raises(WeightsError) as refused:
        read_request({field: [value]}, START)
    assert refused.value.fields == (field,)


@pytest.mark.parametrize(
    "path", sorted(OFFICIAL_TASKS_FOLDER.glob("*/task.yaml")), ids=lambda one: one.parent.name
)
def test_a_preset_does_what_its_name_says_in_every_task(path):
    """“Accuracy only” gave accuracy the weight 0 where the main metric is another one."""
    config = load_config(path.read_text())
    main, start = (
        config.metrics.main,
        build_opening_weights(config.metrics.names, config.weights, ["control"]),
    )
    _owners, *found = iter_presets(read_request({}, start), main)
    assert in_words(main) in found[0].title
    told = [others for others in PRESETS.values() if {*others} <= {*config.metrics.names}]
    for preset, others in zip(found, told, strict=True):
        query = {key: [text] for key, text in parse_qsl(preset.link.removeprefix("?"))}
        chosen = read_request(query, start).weighting.metrics
        assert {one for one, weight in chosen.items() if weight} == {main, *others}
