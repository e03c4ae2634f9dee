"""The leaderboard: weights in the URL, htmx and without, order, what is not run, who sees what."""

# ruff: noqa: F811  (fixtures are named where they are used)

import csv
import io
import json
import re

import pytest

from core.web import figure_files
from core.web.throttles import REQUESTS_PER_HOUR
from evaluation.models import EvaluationRun
from leaderboard.board.cells import Cell
from leaderboard.board.exports import escape_latex
from leaderboard.board.figures import format_cell
from tests.support.board_pages import (
    ROLES,
    URL,
    models,  # noqa: F401
    names,
    person,
    secrets,  # noqa: F401
    task,  # noqa: F401
)
from tests.support.boards import fill_board, measured
from tests.support.evaluations import accepted_model, set_version
from tests.web.conftest import HTMX


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


def test_models_are_ranked_by_the_owners_weights(client, models):
    page = client.get(URL).text
    assert names(page) == ["Model 2", "Model 1", "Model 0"]
    assert "<title>Leaderboard · Natural language inference · Dynabench</title>" in page
    assert ">4 of 8, 50%<" in page


def test_the_weights_stand_in_the_url(client, models):
    query = "?mode=robust&w_accuracy=0&w_throughput=8&w_memory=0&w_fairness=0&w_robustness=0"
    page = client.get(URL + query).text
    assert names(page) == ["Model 0", "Model 1", "Model 2"]
    assert re.search(r"Model 0 [^<]*\b3\b[^<]*\b1\b", page)
    assert ">8 of 8, 100%<" in page


def test_an_anchored_board_tells_its_formula_and_what_each_metric_adds(client, models):
    page = client.get(URL)
    assert page.context["ranked"].mode == "anchored"
    assert page.text.count('id="formula"') == 1
    assert page.context["parts"]["shown"] == len(models)
    assert '<p class="stacked">' in page.text
    other = client.get(URL, {"mode": "classic"})
    assert other.context["parts"] is None
    assert other.text.count('id="formula"') == other.text.count('id="reference-models"') == 1
    rates = other.context["ranked"].rates
    assert {*rates.pool} == {model.name for model in models}
    assert all(f"÷ {rate:.4g}" in other.context["formula"]
               for name, rate in rates.values.items() if name != "accuracy")  # fmt: skip
    assert 'id="reference-models"' not in page.text
    for mode in ("robust", "classic"):
        assert f'id="mode-{mode}"' in page.text
    assert 'id="mode-anchored"' in other.text


def test_files_of_an_anchored_board_have_its_scale(client, models):
    table = client.get(f"{URL}?format=json").json()
    assert (table["mode"], table["anchors"]["version"]) == ("anchored", 3)
    for row in table["rows"]:
        assert sum(row["points"].values()) == pytest.approx(row["dynascore"]["value"], abs=1e-3)
    rows = csv.DictReader(io.StringIO(client.get(f"{URL}?format=csv").text))
    assert all(float(row["points_accuracy"]) > 0 for row in rows)
    assert "% Score = 100" in client.get(f"{URL}?format=latex").text
    classic = client.get(f"{URL}?format=json&mode=classic").json()
    assert classic["anchors"] is None
    assert [row["points"] for row in classic["rows"]] == [{}] * len(models)


@pytest.mark.parametrize("mode", ["anchored", "robust", "classic"])
def test_every_door_tells_the_same_formula(client, models, mode):
    def door(**options):
        return client.get(URL, {"mode": mode, **options})

    said = door().context["formula"]
    table = door(format="json").json()
    (line,) = {row["formula"] for row in csv.DictReader(io.StringIO(door(format="csv").text))}
    api = client.get("/api/v1/tasks/nli/leaderboard/", {"mode": mode}).json()
    assert table["formula"] == line == api["formula"] != ""
    numbers = re.compile(r"\d[\d.e+-]*")
    assert numbers.findall(said) == numbers.findall(line)  # names of metrics are words on the page
    assert f"% {escape_latex(line)}" in door(format="latex").text


def test_a_form_sent_without_javascript_leads_to_a_short_url(client, models):
    """A weight comes as what it was, the slider's and the box's value."""
    reply = client.get(
        f"{URL}?w_accuracy=4&w_accuracy=4&w_accuracy=0&w_memory=1&w_memory=2&w_memory=1"
    )
    assert reply.status_code == 302
    assert "w_accuracy=0&" in reply.url
    assert "w_memory=2&" in reply.url
    assert client.get(reply.url).status_code == 200
    unchanged = client.get(f"{URL}?w_accuracy=4&w_accuracy=4&w_accuracy=4&x=memory")
    assert unchanged.url == f"{URL}?x=memory"


def test_htmx_gets_the_rows_and_what_moved(client, models):
    fields = {
        "w_accuracy": ["4", "0", "0"],
        "w_throughput": ["1", "8", "8"],
        "w_memory": ["1", "0", "0"],
        "w_fairness": ["1", "0", "0"],
        "w_robustness": ["1", "0", "0"],
        "sort": "",
        "mode": "robust",
    }
    reply = client.get(URL, fields, **HTMX)
    assert "<html" not in reply.text
    assert names(reply.text) == ["Model 0", "Model 1", "Model 2"]
    moved = r'<span hx-swap-oob="innerHTML:#status">Model 0 [^<]*\b3\b[^<]*\b1\b'
    assert re.search(moved, reply.text)
    assert 'innerHTML:#share-w_throughput">8 of 8, 100%<' in reply.text
    assert '<input type="range"' not in reply.text
    address = reply["HX-Replace-Url"]
    assert names(client.get(address).text) == ["Model 0", "Model 1", "Model 2"]
    assert "HX-Request" in reply["Vary"]


def test_scores_are_drawn_with_their_intervals(client, task, models):
    accepted_model(task, name="Not run", is_published=True)
    for url in (URL, "/t/nli/"):
        page = client.get(url).text
        plots = "".join(re.findall(r'<svg class="row-plot".*?</tr>', page, re.S))
        dots = re.findall(r'<svg x="([\d.]+)%" y="50%"><path class="chosen dot"', plots)
        places = [float(place) for place in dots]
        assert len(places) == 3
        assert places == sorted(places, reverse=True)
        assert places[0] > places[-1]


@pytest.mark.parametrize("prefix", ["w", "d"])
def test_all_weights_zero_are_refused(client, models, prefix):
    fields = ("accuracy", "macro_f1", "throughput", "memory", "fairness", "robustness")
    if prefix == "d":
        fields = ("round-1", "round-2")
    zeros = {f"{prefix}_{name}": "0" for name in fields}
    page = client.get(URL, zeros)
    assert page.status_code == 422
    assert f'href="#id_{prefix}_' in page.text
    assert "<title>Error: " in page.text
    part = client.get(URL, zeros, **HTMX)
    assert part.status_code == 422
    assert part["HX-Retarget"] == "#problem"
    assert f'href="#id_{prefix}_' in part.text
    assert "HX-Replace-Url" not in part
    file = client.get(URL, {**zeros, "format": "csv"})
    assert (file.status_code, file["Content-Type"]) == (422, "text/plain; charset=utf-8")


def test_a_weight_that_is_none_is_refused_and_stays(client, models):
    for text in ("-1", "9", "nan", "many", "<b>"):
        page = client.get(URL, {"w_accuracy": text})
        assert page.status_code == 422, text
        assert 'href="#id_w_accuracy"' in page.text, text
        shown = text.replace("<", "&lt;").replace(">", "&gt;")
        assert f'name="w_accuracy" min="0" max="8" step="any" value="{shown}"' in page.text


@pytest.mark.parametrize("format", ["", "json"])
def test_a_weight_of_what_is_not_there_is_refused_by_name(client, models, format):
    for field in ("w_acuracy", "d_round-9", "mode"):
        page = client.get(URL, {field: "5"} | ({"format": format} if format else {}))
        assert page.status_code == 422, field
        assert field[2:] in page.text
        if not format:
            assert 'name="w_accuracy"' in page.text  # the form stays
            assert f'href="#id_{field}"' not in page.text


SORTED = [
    ("throughput", ["Model 0", "Model 1", "Model 2"], "descending"),
    ("-throughput", ["Model 2", "Model 1", "Model 0"], "ascending"),
    ("memory", ["Model 0", "Model 1", "Model 2"], "ascending"),
    ("model", ["Model 0", "Model 1", "Model 2"], "ascending"),
    ("-model", ["Model 2", "Model 1", "Model 0"], "descending"),
    ("nonsense", ["Model 2", "Model 1", "Model 0"], None),
]


def test_columns_sort(client, models):
    for sort, order, state in SORTED:
        page = client.get(URL, {"sort": sort}).text
        assert names(page) == order, sort
        column = sort.removeprefix("-")
        found = re.search(rf'<th scope="col"([^>]*)><a id="sort-{column}"', page)
        assert (f'aria-sort="{state}"' in found[1]) if state else found is None, sort


def test_what_was_not_run_is_last_in_every_order(client, task, models):
    partly = accepted_model(task, name="Partly", is_published=True)
    measured(partly, task.evaluation_sets.get(name="round-1").versions.get(), 0.99, 100, 1)
    for query in ("", "?sort=accuracy", "?sort=-accuracy"):
        page = client.get(URL + query).text
        assert names(page)[-1] == "Partly"
        row = page.split('id="model-')[-1].split("</tbody>")[0]
        assert row.count("not run") == 1
        assert row.count('title="not measured"') >= 1
    opened = client.get(f"{URL}?open={partly.pk}", **HTMX).text
    assert re.search(r"<dd>\s*round-2\s*</dd>", opened)  # the reason, in the details
    page = client.get(f"{URL}?d_round-2=0").text
    assert names(page)[0] == "Partly"


def test_equal_models_share_a_rank(client, task):
    version = set_version(task, "round-1")
    for name in ("One", "Other"):
        measured(accepted_model(task, name=name, is_published=True), version, 0.6)
    page = client.get(URL).text
    assert re.findall(r'"rank (tie \w+)"', page) == ["tie begin", "tie end"]
    ranks = re.findall(r'data-label="Rank">\s*<span dir="ltr">(.*?)<', page)
    assert ranks == ["1–2", "1–2"]


def test_a_row_opens(client, models):
    query = f"?open={models[0].pk}"
    page = client.get(URL + query).text
    part = client.get(URL + query, **HTMX)
    assert "<html" not in part.text
    assert "HX-Replace-Url" not in part
    for text in (page, part.text):
        assert "Scores of Model 0 on round-1 v1" in text
        assert "tag=odd" in text
        for word in ("Accuracy before", "Accuracy after", "Drop", "Consistency"):
            assert word in text
    assert "Scores of" not in client.get(URL).text
    assert 'id="no-results"' in client.get(f"{URL}?open=nobody", **HTMX).text


def test_an_open_row_stays_open_while_weights_change(client, models):
    opened = str(models[0].pk)
    page = client.get(URL, {"open": opened}).text
    assert f'form="weights" name="open" value="{opened}"' in page
    sent = {"w_accuracy": ["4", "3", "4"], "open": opened}
    reply = client.get(URL, sent)
    assert f"open={opened}" in reply.url
    assert "Scores of Model 0 on round-1 v1" in client.get(reply.url).text
    part = client.get(URL, sent, **HTMX)
    assert "<tbody" in part.text
    assert "Scores of Model 0 on round-1 v1" in part.text
    assert f"open={opened}" in part["HX-Replace-Url"]


def test_rows_and_models_lead_to_a_comparison(client, models):
    link = f'href="/t/nli/leaderboard/compare/?a={models[0].pk}"'
    assert link in client.get(URL, {"open": models[0].pk}).text
    assert link in client.get(f"/m/{models[0].pk}/").text
    page = client.get(f"/t/nli/leaderboard/compare/?a={models[0].pk}").text
    assert page.count(" selected>Model 0") == 1


def test_marks(client, task, models):
    EvaluationRun.objects.filter(submission=models[0]).update(in_the_loop=True)
    EvaluationRun.objects.filter(submission=models[1]).update(warnings=["Two answers missing."])
    page = client.get(URL).text
    first, second = re.findall(r'<span class="tag">(.*?)</span>', page)
    assert first != second  # one in the loop, one with warnings
    set_version(task, "round-1", size=9)
    assert client.get(URL).text.count('<span class="tag">Inputs changed</span>') == 3


def test_pages_of_a_hundred(client, task, monkeypatch):
    from leaderboard.board import page as board_page

    monkeypatch.setattr(board_page, "PAGE_ROWS", 2)
    fill_board(task, models=5)
    assert len(names(client.get(URL).text)) == 2
    second = client.get(f"{URL}?page=2").text
    assert "Page 2 of 3" in second
    assert 'href="/t/nli/leaderboard/?page=3"' in second


def test_presets_are_one_click_away(client, models):
    page = client.get(URL)
    assert [one.is_chosen for one in page.context["presets"]] == [True] + [False] * 4
    fast = page.context["presets"][2]
    page = client.get(URL + fast.link)
    assert [one.is_chosen for one in page.context["presets"]] == [False, False, True, False, False]
    found = page.context["asked"].weighting.metrics
    assert {name for name, weight in found.items() if weight} == {"accuracy", "throughput"}
    assert page.context["presets"][0].link == "?"


def test_the_greatest_cell_of_a_column_has_the_longest_bar(client, models):
    lines = client.get(URL).context["lines"]
    bars = {line.row.model.name: {c.name: share for c, share, *_ in line.cells} for line in lines}
    assert bars["Model 2"]["accuracy"] == bars["Model 2"]["memory"] == 100
    assert 0 < bars["Model 0"]["accuracy"] < bars["Model 1"]["accuracy"] < 100


def test_bars_are_as_long_as_their_values(client, task):
    version = set_version(task, "round-1", size=40)
    for name, accuracy in (("Better", 0.8), ("Half", 0.4)):
        measured(accepted_model(task, name=name, is_published=True), version, accuracy)
    shares = [line.cells[0].share for line in client.get(URL).context["lines"]]
    assert shares == [100, 50]


def test_the_ranking_is_a_file_by_the_weights_of_the_address(client, models):
    query = "?mode=robust&w_accuracy=0&w_throughput=8&w_memory=0&w_fairness=0&w_robustness=0"
    page = client.get(URL + query)
    assert f"{URL}chart/ranking.svg?" in page.text
    assert page.context["finding"] in page.text
    file = client.get(f"{URL}chart/ranking.svg{query}")
    assert file["Content-Type"].startswith("image/svg+xml")
    order = re.findall(r">(Model \d)<", file.text)
    assert order == ["Model 0", "Model 1", "Model 2"]
    assert client.get(f"{URL}chart/ranking.png").content.startswith(b"\x89PNG")
    assert client.get(f"{URL}chart/two-metrics.svg").status_code == 200
    assert f"{URL}chart/two-metrics.svg" in client.get(URL).text
    refused = client.get(f"{URL}chart/ranking.svg?w_accuracy=x")
    assert refused.status_code == 422


def test_a_picture_is_drawn_once_and_few_are_drawn_for_one_caller(
    client, alice, models, monkeypatch
):
    drawn = []
    draw = figure_files.render_figure_png
    monkeypatch.setattr(
        figure_files, "render_figure_png", lambda svg: drawn.append(svg) or draw(svg)
    )
    monkeypatch.setitem(REQUESTS_PER_HOUR, "chart", 1)
    first, again = (client.get(f"{URL}chart/ranking.png") for _ in range(2))
    assert (first.content, len(drawn)) == (again.content, 1)
    # The weights are other ones, so it is another picture.
    weights = "w_accuracy=0&w_throughput=8&w_memory=0&w_fairness=0&w_robustness=0"
    other = f"{URL}chart/ranking.png?{weights}"
    refused = client.get(other)
    assert (refused.status_code, len(drawn)) == (429, 1)
    assert int(refused["Retry-After"]) > 0
    # A kept one costs nothing, and neither does the drawing itself.
    assert client.get(f"{URL}chart/ranking.png").status_code == 200
    assert client.get(other.replace("png", "svg")).status_code == 200
    client.force_login(alice)
    assert (client.get(other).status_code, len(drawn)) == (200, 2)


def test_a_chart_shows_only_what_everybody_may_see(client, alice, models, secrets):
    client.force_login(alice)
    file = client.get(f"{URL}chart/ranking.svg?mine=1").text
    assert "Model 2" in file
    assert "Private" not in file
    assert "Nameless" not in file


def test_two_models_are_no_plot(client, task):
    fill_board(task, models=2)
    assert 'id="axes"' not in client.get(URL).text
    fill_board(task, models=3, first=2)
    assert 'id="axes"' in client.get(URL).text


def test_the_plot_of_two_metrics_and_its_table(client, models):
    page = client.get(f"{URL}?x=memory&y=accuracy").text
    assert f'<a href="/m/{models[0].pk}/"><title>Model 0: Memory (GiB)' in page
    assert '<option value="memory" selected>' in page
    assert '<option value="" selected>Accuracy' in page
    rows = client.get(f"{URL}?x=memory&y=accuracy").context["plane"]["figure"].table.rows
    assert [cells[2] for _name, cells in rows] == ["yes"] * 3  # each pays memory for accuracy
    usual = client.get(f"{URL}?x=nonsense").context["plane"]
    assert (usual["x"], usual["y"]) == ("throughput", "accuracy")


def test_a_number_without_an_interval_says_why_unless_it_is_a_cost():
    assert format_cell("macro_f1", Cell(0.0))[0] == format_cell("dynascore", Cell(0.0))[0] == "0.0"
    assert format_cell("macro_f1", Cell(0.0))[1]
    assert format_cell("memory", Cell(2.0)) == ("2.00", "")


def test_an_empty_board(client, task):
    page = client.get(URL)
    assert page.status_code == 200
    assert 'id="no-models"' in page.text
    assert '/t/nli/submit/"' not in page.text.partition('id="no-models"')[2]
    set_version(task, "round-1")
    page = client.get(URL).text
    assert '/t/nli/submit/"' in page.partition('id="no-models"')[2]


@pytest.mark.parametrize("format", ["csv", "json", "latex"])
def test_files_have_the_weights_of_the_url(client, models, format):
    query = "mode=robust&w_accuracy=0&w_throughput=8&w_memory=0&w_fairness=0&w_robustness=0"
    reply = client.get(f"{URL}?{query}&format={format}")
    assert reply["Content-Disposition"].startswith('attachment; filename="nli-leaderboard.')
    order = re.findall(r"Model \d", reply.text)[-3:]
    assert order == ["Model 0", "Model 1", "Model 2"]
    if format == "json":
        assert json.loads(reply.text)["weights"]["metrics"]["throughput"] == 8
    if format == "csv":
        assert [row["rank"] for row in csv.DictReader(io.StringIO(reply.text))] == ["1", "2", "3"]


def test_a_fork_that_is_no_text_is_not_there(client, models):
    assert client.get(f"{URL}?fork=%00").status_code == 404


def test_there_are_three_formats(client, models):
    reply = client.get(f"{URL}?format=xml")
    assert reply.status_code == 400
    assert reply["Content-Type"].startswith("text/plain")


# Who sees what


ADDRESSES = {
    "page": URL,
    "csv": f"{URL}?format=csv&mine=1",
    "json": f"{URL}?format=json&mine=1",
    "latex": f"{URL}?format=latex&mine=1",
}


@pytest.mark.parametrize("role", ROLES)
def test_private_hidden_and_anonymous_things_are_on_no_public_board(
    client, alice, task, secrets, role
):
    """And who asks for their own sees it alone."""
    if user := person(role, alice, task):
        client.force_login(user)
    hidden = ("Private", "Nameless", "secret-set", "12.3", "Gone", alice.annotator.pseudonym)
    for address in ADDRESSES.values():
        # The header names whoever reads the page.
        text = client.get(address).text.rpartition('id="main"')[2]
        assert "Anonymous 1" in text, address
        assert not [secret for secret in hidden if secret in text], address
    found = names(client.get(f"{URL}?mine=1").text)
    is_inside = role in ("alice", "owner", "superuser")
    assert ("Private" in found) == is_inside
    assert ("Nameless" in found) == is_inside
    assert "secret-set" not in client.get(f"{URL}?mine=1").text
    private = client.get(f"{URL}?open={secrets[0].pk}", **HTMX).text
    assert 'id="no-results"' in private


@pytest.mark.parametrize("role", ROLES)
def test_boards_of_hidden_tasks_are_for_their_people(client, alice, task, models, role):
    user = person(role, alice, task)
    if user:
        client.force_login(user)
    task.is_visible = False
    task.save(update_fields=["is_visible"])
    expected = 200 if role in ("reviewer", "owner", "superuser") else 404
    for address in ADDRESSES.values():
        assert client.get(address).status_code == expected


def test_a_metric_that_all_models_have_is_a_column(client, models):
    page = client.get(URL)
    assert "throughput" in [column.name for column in page.context["shown_columns"]]
    assert 'id="unmeasured"' not in page.text


def test_a_metric_that_no_model_has_is_no_column(client, models):
    EvaluationRun.objects.update(usage={})
    page = client.get(URL)
    names = [column.name for column in page.context["shown_columns"]]
    assert "throughput" not in names
    assert "accuracy" in names
    assert 'id="unmeasured"' in page.text


def test_further_pages_and_files_are_in_menus(client, models):
    page = client.get(URL).text
    menu = page.split('id="more-of-the-leaderboard"')[1].split("</details>")[0]
    assert 'href="/t/nli/leaderboard/snapshots/"' in menu
    assert 'href="/t/nli/leaderboard/forks/"' in menu
    files = page.split('id="export-menu"')[1].split("</details>")[0]
    for name in ("format=csv", "format=json", "format=latex", "ranking.svg", "ranking.png"):
        assert name in files
