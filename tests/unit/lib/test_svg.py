"""Charts: well-formed, escaped, without inline style, inside their frame."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.lib.charts import (
    HEIGHT,
    WIDTH,
    Dot,
    Point,
    line_chart,
    percent,
    percent_sign,
    scatter,
)

SVG = "{*}"
shares = st.floats(0, 1)


def parsed(svg):
    assert "style" not in svg
    assert "<script" not in svg
    return ElementTree.fromstring(svg)


def classes(root, name):
    return [node for node in root.iter() if node.get("class") == name]


def numbers_of(root, name):
    return [
        float(number)
        for node in classes(root, name)
        for number in re.findall(r"-?\d+(?:\.\d+)?", node.get("d"))
    ]


@st.composite
def points(draw):
    low, value, high = sorted(draw(st.tuples(shares, shares, shares)))
    if draw(st.booleans()):
        return Point(draw(st.text("<&\"'é ", max_size=9)), value, low, high)
    return Point("plain", draw(st.none() | st.just(value)))


@given(st.lists(points(), max_size=30), st.integers(1, 4))
def test_a_line_chart_stays_in_its_frame(line, lines):
    root = parsed(line_chart({f"line {n}": line for n in range(lines)}, title="vMER"))
    known = [point for point in line if point.value is not None]
    assert len(classes(root, "mark")) == lines * (len(known) + 1)  # and one in the legend
    for name in ("line", "band"):
        found = numbers_of(root, name)
        assert all(0 <= x <= WIDTH for x in found[::2])
        assert all(0 <= y <= HEIGHT for y in found[1::2])


def test_a_chart_says_what_it_shows():
    chart = line_chart(
        {"<b>": [Point("1 & 2", 0.156, 0.1, 0.2)]}, title="<vMER>", description='by "round"'
    )
    root = parsed(chart)
    assert (root.get("role"), root[0].tag, root[0].text) == ("img", "title", "<vMER>")
    assert (root[1].tag, root[1].text) == ("desc", 'by "round"')
    assert "<b>, 1 & 2: 15.6%" in [title.text for title in root.iter("title")]
    assert "<b>" not in chart


def test_a_gap_breaks_the_line_and_the_band():
    line = [
        Point("1", 0.1, 0.05, 0.2),
        Point("2", None),
        Point("3", 0.2),
        Point("4", 0.3, 0.2, 0.4),
    ]
    root = parsed(line_chart({"vMER": line}, title="vMER"))
    assert classes(root, "line")[0].get("d").count("M") == 2
    assert classes(root, "band")[0].get("d").count("M") == 2


def test_the_axis_reaches_above_every_interval():
    root = parsed(line_chart({"vMER": [Point("1", 0.1, 0.05, 0.33)]}, title="vMER"))
    texts = [text.text for text in root.iter("text")]
    assert texts[:3] == ["0%", "20%", "40%"]
    empty = [text.text for text in parsed(line_chart({}, title="none")).iter("text")]
    assert empty == ["0%", "50%", "100%"]


def test_about_six_labels_are_written():
    weeks = [Point(f"week {n}", n) for n in range(50)]
    chart = line_chart({"tries": weeks}, title="Tries", shown="{:g}".format)
    texts = [text.text for text in parsed(chart).iter("text")]
    assert [text for text in texts if "week" in text] == [f"week {n}" for n in range(0, 50, 9)]
    assert texts[:3] == ["0", "30", "60"]


def test_five_lines_are_too_many():
    with pytest.raises(ValueError, match="at most 4"):
        line_chart({str(n): [] for n in range(5)}, title="")


def test_shares_in_percent():
    assert (percent(0.1564), percent(1), percent(0)) == ("15.6", "100.0", "0.0")
    assert (percent_sign(0.2), percent_sign(0.0025)) == ("20%", "0.25%")


values = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(st.text("<&\"'é ", max_size=9), values, values, st.booleans())))
def test_places_in_a_plane_are_links_in_its_frame(rows):
    dots = [Dot(name, x, y, f"/m/{n}/", line) for n, (name, x, y, line) in enumerate(rows)]
    root = parsed(scatter(dots, title="Pareto", axes=("speed", "<accuracy>")))
    links = list(root.iter("a"))
    assert [link.get("href") for link in links] == [dot.url for dot in dots]
    for link, dot in zip(links, dots, strict=True):
        assert link[0].text.startswith(f"{dot.name}: speed ")
        assert 0 <= float(link[1].get("cx")) <= WIDTH
        assert 0 <= float(link[1].get("cy")) <= HEIGHT
    line = numbers_of(root, "line")
    assert len(line) == 2 * sum(dot.on_line for dot in dots)
    assert line[::2] == sorted(line[::2])


def test_what_is_more_is_further_right_and_higher():
    dots = [Dot("low", 1, 10, "/"), Dot("high", 2, 20, "/")]
    first, last = parsed(scatter(dots, title="Pareto", axes=("x", "y"))).iter("circle")
    assert float(first.get("cx")) < float(last.get("cx"))
    assert float(first.get("cy")) > float(last.get("cy"))
