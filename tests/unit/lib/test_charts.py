"""Charts: well-formed, escaped, without inline style, inside their frame, with their numbers."""

import re
from xml.etree import ElementTree

import pytest
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from core.charts import (
    Point,
    compute_axis_top,
    compute_scale_percent,
    compute_value_range,
    draw_bars,
    draw_sparkline,
    draw_stacked_bars,
)

shares = st.floats(0, 1)
words = st.text("<&\"'é ", max_size=9)


def parsed(html):
    assert "style=" not in html
    assert "<script" not in html
    return ElementTree.fromstring(f"<div>{re.sub('<!--.*?-->', '', html)}</div>")


def classes(root, name):
    return [node for node in root.iter() if node.get("class") == name]


def share(node, name):
    value = node.get(name)
    assert value.endswith("%")
    return float(value.removesuffix("%"))


def table(root):
    """The texts of each row of the table."""
    return [[" ".join("".join(cell.itertext()).split()) for cell in row] for row in root.iter("tr")]


@given(st.floats(0, 1e12))
def test_the_top_of_an_axis_is_round_and_near(highest):
    top = compute_axis_top({"": [Point("", highest)]})
    assert highest <= top * 1.000001
    assert top in (1, 2, 4, 6, 8) or top <= max(2.5 * highest, 1)


@pytest.mark.parametrize("language", ["en", "de", "ar"])
def test_places_are_written_alike_in_every_language(language):
    with override(language):
        drawn = ""
        drawn += draw_bars({"a": 1, "b": 3}, title="") + draw_sparkline([1, 2.3, 7])
        drawn += draw_stacked_bars({"t": [1, 2]}, ["a", "b"], title="")
    names = ("d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height")
    found = [node.get(name) for node in parsed(drawn).iter() for name in names]
    assert {text for text in found if text and "," in text} == set()


def test_a_funnel_tells_each_stage_as_a_share_of_the_one_before():
    stages = {"Tries": 200, "Fooled": 50, "Judged": 0, "Valid": 0, "Kept": None}
    root = parsed(draw_bars(stages, title="<Funnel>", is_funnel=True))
    assert [row[2] for row in table(root)] == ["200", "50 25%", "0 0%", "0", "–unknown"]
    assert [share(node, "width") for node in classes(root, "mark")] == [100, 25, 0, 0, 0]
    assert root.find("table/caption").text == "<Funnel>"


def test_bars_are_as_long_as_their_values():
    root = parsed(draw_bars({"1": 1.5, "2": 3}, title="Cost", format_value="{:.2f}".format))
    assert [row[2] for row in table(root)] == ["1.50", "3.00"]
    assert [share(node, "width") for node in classes(root, "mark")] == [50, 100]


@given(st.lists(st.integers(0, 99), min_size=1, max_size=9))
def test_stacked_parts_fill_their_bar(counts):
    labels = [f"<{n}>" for n in range(len(counts))]
    root = parsed(draw_stacked_bars({"Tries": counts}, labels, title="Labels"))
    parts = [node for node in root.iter("rect") if node.get("x")]
    ends = [share(node, "x") + share(node, "width") for node in parts]
    starts = [share(node, "x") for node in parts]
    assert starts == pytest.approx([0, *ends[:-1]], abs=0.02)
    assert ends[-1] == pytest.approx(100 if sum(counts) else 0, abs=0.02)
    rows = table(root)[1:]
    assert [row[0] for row in rows] == labels
    assert [int(row[1].split()[0]) for row in rows] == counts


def test_parts_of_a_whole_leave_the_rest_of_their_bar_empty():
    drawn = draw_stacked_bars(
        {"A": [40, 10]}, ["a", "b"], title="Score", full_value=100, format_value=str
    )
    parts = [node for node in parsed(drawn).iter("rect") if node.get("x")]
    assert [(share(node, "x"), share(node, "width")) for node in parts] == [(0, 40), (40, 10)]
    assert [row[1].split() for row in table(parsed(drawn))[1:]] == [["40"], ["10"]]


@given(st.floats(-1e6, 1e6), st.lists(st.floats(-1e6, 1e6), max_size=4))
def test_a_place_on_a_scale_is_between_its_ends(value, values):
    low, high = compute_value_range(values)
    assert low < high
    assert 0 <= compute_scale_percent(value, (low, high)) <= 100


def test_a_sparkline_ends_with_the_last_known_value():
    root = parsed(draw_sparkline([1, None, 3, 2, None]))
    assert classes(root, "line")[0].get("d") == "M0.0 100.0L50.0 0.0L75.0 50.0"
    assert [share(node, "cy") for node in classes(root, "mark")] == [50]
    assert [draw_sparkline(values) for values in ([], [1], [None, 1])] == ["", "", ""]
