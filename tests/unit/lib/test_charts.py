"""Charts: well-formed, escaped, without inline style, inside their frame, with their numbers."""

import re
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from core.charts import (
    EDGES,
    LETTER,
    NARROW,
    STEPS,
    Dot,
    Heat,
    Point,
    along,
    axis_labels,
    bars,
    column_chart,
    heat,
    line_chart,
    matrix,
    nice_top,
    percent,
    percent_sign,
    reach,
    scatter,
    sparkline,
    stacked_bars,
    whisker,
)

shares = st.floats(0, 1)
words = st.text("<&\"'é ", max_size=9)


def parsed(html):
    assert "style=" not in html
    assert "<script" not in html
    return ElementTree.fromstring(f"<div>{re.sub('<!--.*?-->', '', html)}</div>")


def classes(root, name):
    return [node for node in root.iter() if node.get("class") == name]


def places(root, name):
    """Coordinates of path data, in percent."""
    found = "".join(node.get("d") for node in classes(root, name))
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", found)]


def share(node, name):
    value = node.get(name)
    assert value.endswith("%")
    return float(value.removesuffix("%"))


def marks(root):
    """Titles of what is drawn."""
    return [
        node.find("title").text for node in classes(root, "mark") if node.find("title") is not None
    ]


def table(root):
    """The texts of each row of the table."""
    return [[" ".join("".join(cell.itertext()).split()) for cell in row] for row in root.iter("tr")]


def words_of(root):
    return [text.text for text in root.iter("text")]


@st.composite
def points(draw):
    low, value, high = sorted(draw(st.tuples(shares, shares, shares)))
    if draw(st.booleans()):
        return Point(draw(words), value, low, high)
    return Point("plain", draw(st.none() | st.just(value)))


@given(st.lists(points(), min_size=1, max_size=30), st.integers(1, 4))
def test_a_line_chart_stays_in_its_frame(line, lines):
    root = parsed(line_chart({f"line {n}": line for n in range(lines)}, title="vMER"))
    known = [point for point in line if point.value is not None]
    assert len(marks(root)) == lines * len(known)
    assert all(0 <= place <= 100 for name in ("line", "band") for place in places(root, name))
    assert len(table(root)) == 1 + len(line)


def test_a_chart_says_what_it_shows():
    chart = line_chart(
        {"<b>": [Point("1 & 2", 0.156, 0.1, 0.2)]}, title="<vMER>", description='by "round"'
    )
    root = parsed(chart)
    (svg,) = classes(root, "chart")
    assert (svg.get("role"), svg[0].tag, svg[0].text) == ("img", "title", "<vMER>")
    assert (svg[1].tag, svg[1].text) == ("desc", 'by "round"')
    assert marks(root) == ["<b>, 1 & 2: 15.6%"]
    assert table(root) == [["", "<b>"], ["1 & 2", "15.6% (10% to 20%)"]]


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
    assert [row[1] for row in table(root)[1:]] == [
        "10% (5% to 20%)",
        "–",
        "20%",
        "30% (20% to 40%)",
    ]


def test_one_point_stands_in_the_middle_with_its_interval():
    root = parsed(line_chart({"vMER": [Point("1", 0.3, 0.2, 0.4)]}, title="vMER"))
    assert classes(root, "line")[0].get("d") == "M50.0 25.0"
    assert classes(root, "band")[0].get("d") == "M50.0 0.0L50.0 50.0Z"


@pytest.mark.parametrize("chart", [line_chart, column_chart])
@pytest.mark.parametrize("lines", [{}, {"vMER": []}])
def test_nothing_to_draw_is_said_in_words(chart, lines):
    root = parsed(chart(lines, title="vMER"))
    assert not list(root.iter("svg"))
    assert root.find("p").text.strip()


def test_points_without_any_value_have_axes():
    root = parsed(line_chart({"vMER": [Point("1", None)]}, title="vMER"))
    assert words_of(root) == ["0%", "50%", "100%", "1"]
    assert not marks(root)


def test_the_axis_reaches_above_every_interval():
    root = parsed(line_chart({"vMER": [Point("1", 0.1, 0.05, 0.33)]}, title="vMER"))
    assert words_of(root)[:3] == ["0%", "20%", "40%"]


@given(st.floats(0, 1e12))
def test_the_top_of_an_axis_is_round_and_near(highest):
    top = nice_top({"": [Point("", highest)]})
    assert highest <= top * 1.000001
    assert top in (1, 2, 4, 6, 8) or top <= max(2.5 * highest, 1)


@given(st.lists(st.text("abcdefgh ", max_size=40), max_size=60))
def test_labels_on_a_phone_touch_neither_each_other_nor_the_edge(labels):
    ends = [-EDGES[0]]
    for x, text in axis_labels(labels):
        middle, half = x * NARROW / 100, LETTER * len(text) / 2
        assert middle - half >= ends[-1] - 0.1
        ends.append(middle + half)
    assert ends[-1] <= NARROW + EDGES[1] + 0.1


def test_longer_words_leave_fewer_labels():
    short = [*axis_labels([f"Round {n}" for n in range(5)])]
    long = [*axis_labels([f"Round {n} wxyz" for n in range(5)])]
    assert len(short) > len(long) > 0
    ((_, cut),) = axis_labels(["an extraordinarily long label"])
    assert cut.startswith("an extraord")
    assert len(cut) == 13


def test_every_week_of_many_is_in_the_table():
    weeks = [Point(f"week {n}", n) for n in range(50)]
    root = parsed(line_chart({"tries": weeks}, title="Tries", format_value="{:g}".format))
    assert table(root)[1:] == [[f"week {n}", str(n)] for n in range(50)]
    assert words_of(root)[:3] == ["0", "30", "60"]


def test_five_lines_are_too_many():
    with pytest.raises(ValueError, match="at most 4"):
        line_chart({str(n): [] for n in range(5)}, title="")


@pytest.mark.parametrize("language", ["en", "de", "ar"])
def test_places_are_written_alike_in_every_language(language):
    line = {"vMER": [Point("1", 0.123, 0.1, 0.4), Point("2", None), Point("3", 0.2)]}
    cell = SimpleNamespace(value=1.5, low=1.2, high=1.7)
    with override(language):
        drawn = line_chart(line, title="") + column_chart(line, title="")
        drawn += bars({"a": 1, "b": 3}, title="") + whisker(cell, (0, 7)) + sparkline([1, 2.3, 7])
        drawn += stacked_bars({"t": [1, 2]}, ["a", "b"], title="")
        drawn += scatter([Dot("a", 1.5, 2.5, "/")], title="", axes=("x", "y"))
    names = ("d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height")
    found = [node.get(name) for node in parsed(drawn).iter() for name in names]
    assert {text for text in found if text and "," in text} == set()


def test_columns_stand_on_the_axis():
    parts = {
        "Tries": [Point("1", 3), Point("2", 4), Point("3", 0)],
        "Valid": [Point("1", 1), Point("2", 4), Point("3", None)],
    }
    root = parsed(column_chart(parts, title="Weeks"))
    assert marks(root) == ["Tries, 1: 3", "Tries, 2: 4", "Valid, 1: 1", "Valid, 2: 4"]
    columns = [node for node in classes(root, "mark") if node.tag == "rect"]
    assert [share(node, "height") for node in columns] == [75, 100, 25, 100]
    for node in columns:
        assert share(node, "y") + share(node, "height") == 100
        assert share(node, "x") >= 0
        assert share(node, "x") + share(node, "width") <= 100
    assert share(columns[0], "x") == share(columns[2], "x")
    assert table(root)[1:] == [["1", "3", "1"], ["2", "4", "4"], ["3", "0", "–"]]


def test_a_funnel_tells_each_stage_as_a_share_of_the_one_before():
    stages = {"Tries": 200, "Fooled": 50, "Judged": 0, "Valid": 0, "Kept": None}
    root = parsed(bars(stages, title="<Funnel>", is_funnel=True))
    assert [row[2] for row in table(root)] == ["200", "50 25%", "0 0%", "0", "unknown"]
    assert [share(node, "width") for node in classes(root, "mark")] == [100, 25, 0, 0, 0]
    assert root.find("table/caption").text == "<Funnel>"


def test_bars_are_as_long_as_their_values():
    root = parsed(bars({"1": 1.5, "2": 3}, title="Cost", format_value="{:.2f}".format))
    assert [row[2] for row in table(root)] == ["1.50", "3.00"]
    assert [share(node, "width") for node in classes(root, "mark")] == [50, 100]


@given(st.lists(st.integers(0, 99), min_size=1, max_size=9))
def test_stacked_parts_fill_their_bar(counts):
    labels = [f"<{n}>" for n in range(len(counts))]
    root = parsed(stacked_bars({"Tries": counts}, labels, title="Labels"))
    parts = [node for node in root.iter("rect") if node.get("x")]
    ends = [share(node, "x") + share(node, "width") for node in parts]
    starts = [share(node, "x") for node in parts]
    assert starts == pytest.approx([0, *ends[:-1]], abs=0.02)
    assert ends[-1] == pytest.approx(100 if sum(counts) else 0, abs=0.02)
    rows = table(root)[1:]
    assert [row[0] for row in rows] == labels
    assert [int(row[1].split()[0]) for row in rows] == counts


def test_parts_of_a_whole_leave_the_rest_of_their_bar_empty():
    drawn = stacked_bars(
        {"A": [40, 10]}, ["a", "b"], title="Score", full_value=100, format_value=str
    )
    parts = [node for node in parsed(drawn).iter("rect") if node.get("x")]
    assert [(share(node, "x"), share(node, "width")) for node in parts] == [(0, 40), (40, 10)]
    assert [row[1].split() for row in table(parsed(drawn))[1:]] == [["40"], ["10"]]


def test_a_matrix_shades_its_cells():
    rows = [("<a>", [Heat("–"), Heat("3 of 4", 0.75)]), ("b", [Heat("0 of 4", 0), Heat("–")])]
    root = parsed(matrix(["<a>", "b"], rows, title="Wins", corner="Model"))
    assert table(root) == [["Model", "<a>", "b"], ["<a>", "–", "3 of 4"], ["b", "0 of 4", "–"]]
    shades = [node.get("class").split()[1:] for node in root.iter("td")]
    assert shades == [[], ["heat-3"], ["heat-0"], []]


@given(shares)
def test_shades_grow_with_the_share(value):
    assert 0 <= heat(value) <= STEPS - 1
    assert heat(value) <= heat(min(1, value + 0.1))
    assert (heat(None), heat(0), heat(1)) == (None, 0, STEPS - 1)


@given(st.floats(-1e6, 1e6), st.lists(st.floats(-1e6, 1e6), max_size=4))
def test_a_place_on_a_scale_is_between_its_ends(value, values):
    low, high = reach(values)
    assert low < high
    assert 0 <= along(value, (low, high)) <= 100


def test_a_whisker_goes_from_end_to_end():
    cell = SimpleNamespace(value=50, low=40, high=70)
    (line,) = classes(parsed(whisker(cell, (0, 100))), "line")
    assert (share(line, "x1"), share(line, "x2")) == (40, 70)
    point = parsed(whisker(SimpleNamespace(value=50, low=None, high=None), (0, 100)))
    assert [share(node, "cx") for node in classes(point, "mark")] == [50]
    assert whisker(SimpleNamespace(value=None, low=None, high=None), (0, 100)) == ""


def test_a_sparkline_ends_with_the_last_known_value():
    root = parsed(sparkline([1, None, 3, 2, None]))
    assert classes(root, "line")[0].get("d") == "M0.0 100.0L50.0 0.0L75.0 50.0"
    assert [share(node, "cy") for node in classes(root, "mark")] == [50]
    assert [sparkline(values) for values in ([], [1], [None, 1])] == ["", "", ""]


def test_shares_in_percent():
    assert (percent(0.1564), percent(1), percent(0)) == ("15.6", "100.0", "0.0")
    assert (percent_sign(0.2), percent_sign(0.0025)) == ("20%", "0.25%")


values = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(words, values, values, st.booleans())))
def test_places_in_a_plane_are_links_in_its_frame(rows):
    dots = [Dot(name, x, y, f"/m/{n}/", line) for n, (name, x, y, line) in enumerate(rows)]
    root = parsed(scatter(dots, title="Pareto", axes=("speed", "<accuracy>")))
    links = list(root.iter("a"))
    assert [link.get("href") for link in links] == [dot.url for dot in dots]
    for link, dot in zip(links, dots, strict=True):
        assert link[0].text.startswith(f"{dot.name}: speed ")
        assert 0 <= share(link[1], "cx") <= 100
        assert 0 <= share(link[1], "cy") <= 100
    line = places(root, "line")
    assert len(line) == 2 * sum(dot.on_line for dot in dots)
    assert line[::2] == sorted(line[::2])


def test_what_is_more_is_further_right_and_higher():
    dots = [Dot("low", 1, 10, "/"), Dot("high", 2, 20, "/")]
    first, last = parsed(scatter(dots, title="Pareto", axes=("x", "y"))).iter("circle")
    assert share(first, "cx") < share(last, "cx")
    assert share(first, "cy") > share(last, "cy")
