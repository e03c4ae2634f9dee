"""Charts with axes: the same shapes on pages and in files, in their frame, of limited size."""

import re
from itertools import pairwise
from pathlib import Path
from struct import unpack
from xml.etree import ElementTree

import pytest
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from core.charts import Point, choose_ticks
from core.figures.drawing import ROLES, draw_on_page
from core.figures.figure import (
    MAX_PNG_PIXELS,
    Figure,
    FigureTable,
    LegendItem,
    index_figures,
    render_figure_png,
    write_figure_svg,
)
from core.figures.names import shorten_names
from core.figures.planes import PlaneDot, build_plane_scene, compute_shifts
from core.figures.plots import (
    Bracket,
    ColumnPart,
    PlotLine,
    build_column_scene,
    build_line_legend,
    build_line_scene,
    compute_share_axis_top,
    find_last_index,
    spread_labels,
)
from core.figures.rows import (
    MAX_FILE_ROWS,
    PERCENT_AXIS,
    AxisRow,
    RowAxis,
    build_rows_scene,
    draw_brackets,
    draw_row,
)
from core.figures.scene import Box, Label, Margins, Mark, Scene, Segment, mirror_scene
from dynabench.templatetags.charts import draw_thin_bar, draw_whisker

SVG = "{http://www.w3.org/2000/svg}"
shares = st.floats(0, 1)
words = st.text("<&\"'é ", max_size=9)


def parsed(text):
    assert "style=" not in text
    return ElementTree.fromstring(text)


def texts(root):
    return [node.text for node in root.iter() if node.tag.removeprefix(SVG) == "text"]


def line_scene(*values, **options):
    points = [Point(f"R{n}", value) for n, value in enumerate(values)]
    return build_line_scene([PlotLine("People", points, "people")], top=1, **options)


def figure(scene, **values):
    return Figure("name", "A <finding>", "n = 3", scene, **values)


def test_every_role_has_a_class_for_pages():
    css = Path("static/css/charts.css").read_text()
    for role in ROLES:
        if role not in ("axis text", "other text", "grid"):  # these look as all texts and lines do
            assert f".{role.split()[0]}" in css, role


@given(st.lists(st.tuples(shares, words), min_size=1, max_size=20))
def test_a_chart_has_the_same_texts_and_marks_on_a_page_and_in_a_file(values):
    points = [
        Point(text, value, max(0, value - 0.1), min(1, value + 0.1)) for value, text in values
    ]
    lines = [PlotLine("People", points, "people"), PlotLine("<m>", points, "chosen")]
    scene = build_line_scene(lines, top=1, bracket=Bracket(0.9, 0.4, "50 points"))
    page = parsed(draw_on_page(scene, "title"))
    file = parsed(write_figure_svg(figure(scene), "Source"))
    assert set(texts(page)) <= set(texts(file))
    dots = [node for node in page.iter("path") if " dot" in node.get("class", "")]
    assert len(dots) == 2 * len(values)
    assert {"People", "<m>", "50 points"} <= set(texts(page))


@given(st.lists(st.none() | shares, min_size=1, max_size=30))
def test_points_lie_in_the_plot(values):
    for shape in line_scene(*values).shapes:
        if isinstance(shape, Mark):
            assert 0 <= shape.position[0] <= 100
            assert 0 <= shape.position[1] <= 100


def test_a_file_needs_nothing_else_and_names_its_source():
    scene = line_scene(0.5, 0.6)
    text = write_figure_svg(figure(scene), "Source: http://testserver/t/nli/, snapshot 3")
    root = parsed(text)
    assert root.tag == f"{SVG}svg"
    assert "class=" not in text
    assert "var(" not in text
    assert root.find(f"{SVG}rect").get("fill") == "#FFFFFF"
    assert texts(root)[:2] == ["A <finding>", "n = 3"]
    assert texts(root)[-1] == "Source: http://testserver/t/nli/, snapshot 3"


def test_texts_of_a_file_stay_inside_it():
    points = [Point("R1", 1.0)]
    name = "a name of sixty characters that nobody would ever give to it"
    scene = build_line_scene([PlotLine(name, points, "chosen")], top=1)
    root = parsed(write_figure_svg(Figure("n", name * 4, name * 4, scene), "Source"))
    width = float(root.get("width"))
    for node in root.iter(f"{SVG}text"):
        letters = 0.57 * float(node.get("font-size")) * len(node.text)
        x = float(node.get("x")) + float(node.get("dx", 0))
        start = {"start": x, "middle": x - letters / 2, "end": x - letters}
        anchor = node.get("text-anchor", "start")
        assert start[anchor] >= 0, node.text
        assert start[anchor] + letters <= width, node.text


def picture_size(png):
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return unpack(">II", png[16:24])


def test_a_picture_has_two_pixels_for_one_and_never_too_many():
    svg = write_figure_svg(figure(line_scene(0.5)), "Source")
    root = parsed(svg)
    width, height = picture_size(render_figure_png(svg))
    assert width == 2 * float(root.get("width"))
    assert height == pytest.approx(2 * float(root.get("height")), abs=1)
    scene = Scene((Segment("grid", (0, 0), (100, 100)),), 9000, 3000, Margins())
    width, height = picture_size(render_figure_png(write_figure_svg(figure(scene), "Source")))
    assert width * height <= MAX_PNG_PIXELS * 1.01


@given(st.lists(st.floats(-1e4, 1e4), max_size=9))
def test_labels_never_touch_and_keep_their_order(places):
    spread = spread_labels(places, 15)
    order = sorted(range(len(places)), key=lambda n: places[n])
    for before, after in pairwise(order):
        assert spread[after] - spread[before] >= 15 - 1e-6
    if len(places) == 1:
        assert spread == places


@given(st.lists(st.lists(st.integers(0, 500), min_size=4, max_size=4), min_size=1, max_size=40))
def test_the_parts_of_a_column_never_exceed_it(days):
    roles = ("held bar", "waiting bar", "catch bar", "refuted bar")
    parts = [ColumnPart(role, role, [day[n] for day in days]) for n, role in enumerate(roles)]
    scene = build_column_scene([str(n) for n in range(len(days))], parts)
    boxes = [shape for shape in scene.shapes if isinstance(shape, Box)]
    # Of each column, the parts stand on each other from the axis to the total.
    columns = {}
    for box in boxes:
        columns.setdefault(box.position[0], []).append(box)
        assert box.position[1] >= -0.01
    for column in columns.values():
        base = 100
        for box in column:
            assert box.position[1] + box.height == pytest.approx(base, abs=0.02)
            base = box.position[1]
    totals = [f"{sum(day):,}" for day in days if sum(day)]
    above = [s.text for s in scene.shapes if isinstance(s, Label) and s.dy == -5]
    assert above == totals


def test_small_rates_are_drawn_from_zero_and_large_ones_to_all():
    assert compute_share_axis_top([Point("", 0.2, 0.1, 0.33)]) == 0.4
    assert compute_share_axis_top([Point("", 0.7)]) == 1
    assert compute_share_axis_top([Point("", None)]) == 1


def test_what_rests_on_little_is_hollow_and_dashed():
    points = [Point("R1", 0.5, is_thin=True), Point("R2", 0.5), Point("R3", 0.5)]
    scene = build_line_scene([PlotLine("m", points, "chosen")], top=1)
    roles = [shape.role for shape in scene.shapes if shape.role.startswith("chosen")]
    assert roles.count("chosen dot thin") == roles.count("chosen line thin") == 1
    assert roles.count("chosen dot") == 2


def test_a_row_shows_its_value_interval_and_what_was_before():
    row = AxisRow("m", 60, 50, 70, earlier_value=(40, 30, 50))
    root = parsed(draw_row(row, PERCENT_AXIS))
    assert root.get("aria-hidden") == "true"
    dots = [node for node in root.iter("svg") if node.find("path") is not None]
    places = {node.find("path").get("class"): node.get("x") for node in dots}
    assert places["chosen dot"] == "60%"
    assert places["other dot"] == "40%"
    ranged = parsed(draw_row(AxisRow("m", None, 20, 60, 30, 50), PERCENT_AXIS))
    (bar,) = [node for node in ranged.iter("rect") if node.get("class") == "chosen range"]
    assert (bar.get("x"), bar.get("width")) == ("30%", "20%")


def test_the_band_of_people_and_the_line_of_chance_are_in_every_row():
    axis = RowAxis(0, 100, PERCENT_AXIS.ticks, chance=33, band=(88, 94), zero=50)
    root = parsed(draw_row(AxisRow("m", None), axis))
    classes = [node.get("class") for node in root.iter() if node.get("class")]
    assert classes.count("people band") == classes.count("chance") == classes.count("zero") == 1


@pytest.mark.parametrize("language", ["en", "de", "ar"])
def test_places_are_written_alike_in_every_language(language):
    with override(language):
        drawn = draw_row(AxisRow("m", 1.5, 1.2, 1.7), RowAxis(0, 7, ()))
        drawn += draw_on_page(line_scene(0.123, None, 0.2), "")
    assert not re.search(r' (?:d|[xy][12]?|width|height)="[^"]*,', drawn)


def test_a_small_whisker_goes_from_end_to_end():
    drawn = draw_whisker(AxisRow("", 50, 40, 70), (0, 100))
    (line,) = parsed(drawn).iter("line")
    assert (line.get("x1"), line.get("x2")) == ("40%", "70%")
    assert draw_whisker(AxisRow("", None), (0, 100)) == ""
    assert 'width="30%"' in draw_thin_bar(30)


def test_rows_that_share_a_rank_have_one_bracket():
    brackets = list(draw_brackets([1, 1, 1, 0, 2, 3, 3], 0))
    assert len(brackets) == 2
    assert brackets[0].start[1] < 100 / 7
    assert brackets[0].end[1] < 300 / 7


def test_a_file_of_many_rows_ends():
    scene = build_rows_scene([AxisRow(str(n), n) for n in range(500)], PERCENT_AXIS)
    assert scene.height == 30 * MAX_FILE_ROWS
    assert "59" in [s.text for s in scene.shapes if isinstance(s, Label)]


def test_the_plane_links_its_points_and_names_the_best():
    dots = [
        PlaneDot("fast", 10, 50, "/m/1/", None, (45, 55), True),
        PlaneDot("sure", 1, 90, "/m/2/", None, (85, 95), True),
        PlaneDot("bad", 1, 40, "/m/3/"),
    ]
    scene = build_plane_scene(dots, ("Speed", "Accuracy"), (False, False))
    page = parsed(draw_on_page(scene, "title"))
    assert [link.get("href") for link in page.iter("a")] == ["/m/1/", "/m/2/", "/m/3/"]
    assert page.get("role") == "group"
    named = texts(page)
    assert {"fast", "sure"} <= set(named)
    assert "bad" not in named
    file = write_figure_svg(figure(scene), "Source")
    assert "href" not in file


def test_a_legend_is_in_the_file_unless_labels_say_it():
    items = [LegendItem("catch bar", "Catches")]
    scene = line_scene(0.5)
    assert "Catches" in texts(parsed(write_figure_svg(figure(scene, legend=items), "")))
    labelled = figure(scene, legend=items, has_end_labels=True)
    assert "Catches" not in texts(parsed(write_figure_svg(labelled, "")))
    ((sign, said),) = labelled.legend_marks
    assert said == "Catches"
    assert 'class="catch bar"' in sign


def test_charts_that_were_not_drawn_have_no_file():
    table = FigureTable(["a"], [("b", ["c"])])
    drawn = figure(line_scene(0.5), table=table)
    assert index_figures([None, drawn]) == {"name": drawn}


def test_stripes_have_an_id_of_their_own():
    parts = [ColumnPart("refuted bar", "refuted", [3])]
    page = draw_on_page(build_column_scene(["a"], parts, css_class="days"), "t")
    (pattern,) = parsed(page).iter("pattern")
    assert f"url(#{pattern.get('id')})" in page
    assert re.search(r"days", pattern.get("id"))


names = st.lists(st.text("ab-1", min_size=1, max_size=40), min_size=1, max_size=6, unique=True)


@given(names, st.integers(6, 24))
def test_names_of_a_chart_are_never_too_long(names, limit):
    short_names = shorten_names(names, limit)
    assert all(len(name) <= limit for name in short_names)
    for name, short in zip(names, short_names, strict=True):
        assert short == name if len(name) <= limit else "…" in short


def test_names_that_differ_at_their_ends_stay_apart():
    versions = [f"starter-sentiment-classifier-v{number}" for number in range(1, 5)]
    assert len(set(shorten_names(versions, 16))) == 4
    # What differs before the last third is kept as well.
    seeds = [f"model-trained-on-round-{number}-seed-1" for number in range(1, 5)]
    assert len(set(shorten_names(seeds, 16))) == 4


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_round_and_enclose_all_values(low, width):
    ticks = choose_ticks(low, low + width)
    values = [value for value, _text in ticks]
    assert values[0] <= low + 1e-6 * width
    assert values[-1] >= low + width - 1e-6 * width
    assert 2 <= len(ticks) <= 6
    # No two labels are the same, and none has more than three digits that count.
    labels = [text for _value, text in ticks]
    assert len(set(labels)) == len(labels)


@given(st.lists(st.tuples(st.sampled_from([10.0, 10.2, 50.0]), st.just(40.0)), max_size=8))
def test_no_point_of_a_plane_hides_another(positions):
    shifts = compute_shifts(positions)
    places = sorted(x * 7.6 + shift for (x, _y), shift in zip(positions, shifts, strict=True))
    assert all(after - before >= 8.9 for before, after in pairwise(places))
    assert len(positions) < 2 or shifts[0] == 0


def test_points_of_two_lines_stand_beside_each_other():
    points = [Point("R1", 0.5, 0.4, 0.6), Point("R2", 0.5, 0.4, 0.6)]
    lines = [PlotLine("a", points, "chosen"), PlotLine("b", points), PlotLine("c", points)]
    scene = build_line_scene(lines, top=1)
    shifts = [
        shape.dx for shape in scene.shapes if isinstance(shape, Mark) and " dot" in shape.role
    ]
    assert sorted(set(shifts)) == [-7, 0, 7]
    page, file = draw_on_page(scene, "title"), write_figure_svg(figure(scene), "Source")
    assert 'transform="translate(-7 0)"' in page
    assert parsed(file) is not None


def test_a_legend_has_the_order_and_the_signs_of_the_lines():
    lines = [
        PlotLine("low", [Point("R1", 0.9), Point("R2", 0.2)], "chosen"),
        PlotLine("high", [Point("R1", 0.1), Point("R2", 0.8)]),
        PlotLine("none", [Point("R1", None), Point("R2", None)]),
    ]
    legend = build_line_legend(lines)
    assert [item.name for item in legend] == ["high", "low", "none"]
    assert len({(item.role, item.shape) for item in legend}) == 3
    roles = {shape.role for shape in build_line_scene(lines, top=1).shapes}
    assert {"second dot", "chosen dot", "second text end"} <= roles


def test_lines_end_at_the_last_known_value():
    points = [Point("R1", 0.5), Point("R2", None), Point("R3", 0.6), Point("R4", None)]
    lines = [PlotLine("a", points, "chosen"), PlotLine("b", points[:1] + [Point("", None)] * 3)]
    assert find_last_index(lines) == 2
    page = parsed(draw_on_page(build_line_scene(lines, top=1), "title"))
    assert "R3" in texts(page)
    assert "R4" not in texts(page)
    assert find_last_index([PlotLine("a", [Point("R1", None)])]) is None


def test_charts_begin_at_the_right_for_readers_of_arabic():
    bar = (Box("held bar", (0, 0), 30, 100),)
    row = AxisRow("m", 25, 20, 40)
    thin_bar, plot = draw_thin_bar(30), draw_row(row, PERCENT_AXIS)
    assert 'x="0%" y="0%" width="30%"' in thin_bar
    assert '<svg x="25%" y="50%"><path class="chosen dot"' in plot
    with override("ar"):
        assert 'x="70%" y="0%" width="30%"' in draw_thin_bar(30)
        assert '<svg x="75%" y="50%"><path class="chosen dot"' in draw_row(row, PERCENT_AXIS)
        scene = build_line_scene([PlotLine("People", [Point("R1", 0.5)], "people")], top=1)
        file = write_figure_svg(figure(Scene(bar, 10, 100, Margins(0, 50, 0, 10))), "Source")
        page = draw_on_page(scene, "title")
    # The margins change sides, and lines of text begin at the right edge.
    assert 'x="120.0" y="' in file
    assert 'x="136"' in file
    assert 'text-anchor="end"' in file
    assert 'd="M0 0H16"' in page
    assert 'text-anchor="start"' in page


def test_a_text_from_right_to_left_begins_with_its_number_at_the_right():
    scene = Scene((Label("axis text", (0, 0), "31 نقطة"), Label("axis text", (0, 0), "R1")), 9, 9)
    with override("ar"):
        assert texts(parsed(draw_on_page(scene, "t"))) == ["\u206731 نقطة\u2069", "R1"]


def test_a_scene_that_is_mirrored_twice_is_as_before():
    scene = line_scene(0.2, 0.7, 0.4)
    assert mirror_scene(mirror_scene(scene)) != scene  # the frame's stubs keep their second shape
    rows = build_rows_scene([AxisRow("m", 25, 20, 40)], PERCENT_AXIS)
    assert mirror_scene(mirror_scene(rows)) == rows


def test_numbers_of_charts_have_the_marks_of_the_reader():
    with override("de"):
        assert choose_ticks(0, 2)[1] == (0.5, "0,5")
        assert [text for _value, text in choose_ticks(0, 4000)][1] == "1.000"
        columns = build_column_scene(["a"], [ColumnPart("catch bar", "c", [1200])])
        assert "1.200" in texts(parsed(draw_on_page(columns, "t")))
