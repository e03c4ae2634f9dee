"""Two models side by side: tests, slices, examples, and who sees what of them."""

# ruff: noqa: F811  (fixtures are named where they are used)

import gzip
import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.core.files.base import ContentFile
from django.utils import timezone

from evaluation.contract import Answer, SetRow
from evaluation.isolation.inference.evaluate import build_prediction_line
from evaluation.models import EvaluationRun
from evaluation.scoring.paired import compute_mcnemar_p
from leaderboard.compare import models as comparing
from leaderboard.compare.outcomes import name_outcome
from tasks.models import TaskMember
from tests.support.boards import fill_board
from tests.support.compared_models import (
    answered,
    rows_of,
    task,  # noqa: F401
    version,  # noqa: F401
)
from tests.support.evaluations import LABELS, accepted_model, set_version
from tests.support.factories import TaskFactory, UserFactory
from tests.support.query_counts import check, count
from tests.support.submissions import release_of

URL = "/t/nli/leaderboard/compare/"


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def pair(task, version):
    """Ada is right but on every eighth example, Ben only in the first half."""
    ada, ben = (accepted_model(task, name=name, is_published=True) for name in ("Ada", "Ben"))
    answered(ada, version, lambda n: n % 8)
    answered(ben, version, lambda n: n < 120)
    return ada, ben


def ask(client, pair, **more):
    return client.get(URL, {"a": pair[0].pk, "b": pair[1].pk, **more})


def test_the_win_matrix_leads_to_each_pair(client, task, pair, version):
    same = accepted_model(task, name="Same", is_published=True)
    answered(same, version, lambda n: n % 8)
    accepted_model(task, name="Not run", is_published=True)
    page = client.get(URL).text
    *_comparison, rows = tables(page)
    assert rows == [
        ["1 Ada", "–", "50%", "100%"],
        ["2 Same", "50%", "–", "100%"],
        ["3 Ben", "0%", "0%", "–"],
    ]
    assert f'href="?a={pair[0].pk}&amp;b={pair[1].pk}"' in page
    assert 'win-2"' in page
    assert 'aria-label="Wins"' not in ask(client, pair).text


def test_one_model_wins_nothing(client, task, version):
    answered(accepted_model(task, name="Ada", is_published=True), version, lambda n: n % 8)
    assert 'aria-label="Wins"' not in client.get(URL).text


def compared(task, matrix):
    return comparing.compare_models(task, matrix, 0, 1, comparing.find_shared_runs(matrix, 0, 1))


def tables(page):
    """The cells of each table's body, without tags."""
    return [
        [
            [
                " ".join(re.sub("<[^>]+>", " ", cell).split())
                for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)
            ]
            for row in re.findall(r"<tr>(.*?)</tr>", table, re.S)
        ]
        for table in re.findall(r"<tbody>(.*?)</tbody>", page, re.S)
    ]


def test_the_form_offers_the_boards_models(client, pair):
    form = client.get(URL).text.partition('class="filters pair"')[2].partition("</form>")[0]
    assert re.findall(r"<option[^>]*>([^<]+)<", form) == ["Ada", "Ben"] * 2


def test_without_a_choice_the_best_two_are_compared(client, task, pair, version):
    answered(accepted_model(task, name="Worst", is_published=True), version, lambda n: False)
    page = client.get(URL)
    assert (page.context["first"].name, page.context["second"].name) == ("Ada", "Ben")
    assert 'aria-label="Differences"' in page.text
    assert 'aria-label="Differences"' not in client.get(URL, {"a": str(pair[1].pk)}).text


@pytest.mark.parametrize(
    ("asked", "shown"),
    [({}, ("Ada", "Ben")), ({"a": "Ben"}, ("Ben", "Ada")), ({"b": "Ada"}, ("Ben", "Ada"))],
)
def test_the_form_opens_with_two_different_models(client, pair, asked, shown):
    ids = {model.name: str(model.pk) for model in pair}
    page = client.get(URL, {side: ids[name] for side, name in asked.items()}).text
    assert re.findall(r'<option value="(\S+)"\s+selected', page) == [ids[name] for name in shown]


def test_metrics_are_tested_on_the_same_examples(client, pair):
    reply = ask(client, pair)
    page, context = reply.text, reply.context
    accuracy, f1, *_ = tables(page)[0]
    assert accuracy[:3] == ["round-1 v1, Accuracy", "87.5", "50.0"]
    assert accuracy[4] == "Ada +37.5"
    tests = {row[0]: row[1:] for row in tables(page)[1]}
    lead, ends, method, p, corrected_p = tests["round-1 v1, Accuracy"]
    assert lead == "Ada +37.5"
    assert re.fullmatch(r"[\d.]+ to [\d.]+", ends)
    assert (method, p, corrected_p) == (
        "McNemar&#x27;s exact test", "&lt; 0.0001", "&lt; 0.0001"
    )  # fmt: skip
    assert tests[f1[0]][2] == "Bootstrap resamples"
    assert all(row[1:3] != ["not run", "not run"] for row in tables(page)[0])
    assert (context["firsts"], context["seconds"]) in ((1, 0), (2, 0))
    backwards = tables(ask(client, pair[::-1]).text)[0][0]
    assert backwards[4] == "Ada +37.5"  # the lead of Ada, whose side is now the other


def test_differences_are_drawn_and_are_a_file(client, pair):
    reply = ask(client, pair)
    drawn = reply.context["rows"]
    assert [row.row for row in drawn] == list(reply.context["found"].rows)
    tested = [row for row in drawn if row.ends]
    assert tested[0].winner == "Ada"
    assert tested[0].points == "+37.5"
    dots = re.findall(r'<svg x="([\d.]+)%" y="50%"><path class="lose dot"', reply.text)
    assert float(dots[0]) < 50  # to the left, where the first model is better
    mirrored = ask(client, pair[::-1]).text
    dots = re.findall(r'<svg x="([\d.]+)%" y="50%"><path class="chosen dot"', mirrored)
    assert float(dots[0]) > 50
    query = f"?a={pair[0].pk}&b={pair[1].pk}"
    for format, begin in (("svg", b"<svg"), ("png", b"\x89PNG")):
        file = client.get(f"{URL}chart/differences.{format}{query}")
        assert file.content.startswith(begin)
    assert client.get(f"{URL}chart/differences.svg?a={pair[0].pk}").status_code == 404


def test_a_file_names_the_pair_and_no_words_of_the_request(client, pair):
    query = f"?a={pair[0].pk}&b={pair[1].pk}"
    plain = client.get(f"{URL}chart/differences.svg{query}").content
    assert f"a={pair[0].pk}&amp;b={pair[1].pk}".encode() in plain
    assert client.get(f"{URL}chart/differences.svg{query}&note=forged").content == plain


def test_four_parts_say_who_is_right_and_lead_to_the_examples(client, task, pair):
    bars = ask(client, pair).context["outcomes"]
    counts = {part.name: part.count for part in bars[0].parts}
    assert sum(counts.values()) == ask(client, pair).context["found"].rows[0].test_result.n
    # Accuracies are both plus the one that only this model has right.
    total = sum(counts.values())
    assert (counts["both"] + counts["first"]) / total == 0.875
    assert (counts["both"] + counts["second"]) / total == 0.5
    # Which example is right is for those who may see right answers.
    assert {part.query for part in bars[0].parts} == {""}
    owner = UserFactory()
    TaskMember.objects.create(task=task, user=owner, role="owner")
    client.force_login(owner)
    bars = ask(client, pair).context["outcomes"]
    for part in bars[0].parts:
        page = client.get(URL + part.query)
        listed = [example.grades for example in page.context["page"]]
        assert len(listed) == min(part.count, comparing.PAGE_EXAMPLES)
        assert {name_outcome(*grades) for grades in listed} <= {part.name}


def test_readers_cannot_list_examples_by_who_is_right(client, pair):
    usual = ask(client, pair, set="round-1")
    asked = ask(client, pair, set="round-1", part="both")
    assert asked.context["part"] == ""
    assert hypotheses(asked.text) == hypotheses(usual.text)


def test_examples_without_their_context_are_not_one_cluster(client, db):
    """Sentiment's prompt is optional: history and models may lack it."""
    task = TaskFactory(code="sentiment")
    moods = ("positive", "negative", "neutral")
    rows = [SetRow(f"u{n}", {"text": f"Text {n}."}, (moods[n % 3],)) for n in range(90)]
    version = set_version(task, "round-1", rows=rows)
    pair = [accepted_model(task, name=name, is_published=True) for name in ("Ada", "Ben")]
    for model, share in zip(pair, (90, 45), strict=True):
        lines = b"".join(
            build_prediction_line(f"u{n}", Answer(moods[(n + (n >= share)) % 3])) for n in range(90)
        )
        EvaluationRun.objects.create(
            submission=model, version=version, state="done", outcome="ok", runner="process",
            predictions=ContentFile(gzip.compress(lines), name="p.jsonl.gz"),
        )  # fmt: skip
    query = {"a": pair[0].pk, "b": pair[1].pk}
    page = client.get("/t/sentiment/leaderboard/compare/", query).text
    accuracy = next(row for row in tables(page)[0] if row[0] == "round-1 v1, Accuracy")
    assert accuracy[4] == "Ada +50.0"
    assert tables(page)[1][0][3] == "McNemar&#x27;s exact test"


def test_the_p_is_mcnemars_and_corrected_for_the_table(task, version, pair):
    from leaderboard.board.matrix import read_matrix

    found = compared(task, read_matrix(task))
    row = next(row for row in found.rows if row.metric == "accuracy")
    assert row.test_result.p == compute_mcnemar_p(105, 15)
    tested = [row for row in found.rows if row.test_result]
    assert len(tested) == 2
    assert row.adjusted_p == pytest.approx(min(1, 2 * row.test_result.p))


def test_models_that_may_be_equal_show_no_clear_difference(client, task, version):
    pair = [accepted_model(task, name=name, is_published=True) for name in ("Ada", "Ben")]
    answered(pair[0], version, lambda n: n % 8)
    answered(pair[1], version, lambda n: (n + 1) % 8)
    page = ask(client, pair)
    assert 'data-better=""' in page.text
    assert (page.context["firsts"], page.context["seconds"]) == (0, 0)


def test_examples_of_one_context_are_drawn_together(client, task):
    version = set_version(task, "round-1", rows=rows_of(240, contexts=40))
    pair = [accepted_model(task, name=name, is_published=True) for name in ("Ada", "Ben")]
    answered(pair[0], version, lambda n: n % 8)
    answered(pair[1], version, lambda n: n < 120)
    (row, *_) = ask(client, pair).context["found"].rows
    assert (row.test_result.clusters, row.test_result.n) == (40, 240)


def test_slices_are_flagged_and_small_ones_are_not_tested(client, pair):
    page = ask(client, pair)
    slices = {row[0]: row[1:] for row in tables(page.text)[2]}
    assert slices.keys() == {"round-1, tag=early", "round-1, tag=late"}
    assert slices["round-1, tag=late"][0] == "120"
    assert slices["round-1, tag=late"][1].startswith("Ada +")
    assert slices["round-1, tag=early"][1].startswith("Ben +")
    tests = {row[0]: row[1:] for row in tables(page.text)[3]}
    assert tests.keys() == slices.keys()
    assert tests["round-1, tag=late"][2] == "McNemar&#x27;s exact test"
    assert page.context["found"].small_slices == 20


def test_large_sets_are_compared_on_resamples_and_say_so(client, pair, monkeypatch):
    monkeypatch.setattr(comparing, "MAX_EXAMPLES", 239)
    reply = ask(client, pair, set="round-1")
    row = tables(reply.text)[0][0]
    assert row[4] == "Ada +37.5"
    assert tables(reply.text)[1][0][3] == "Bootstrap resamples"
    assert reply.context["found"].unread == ("round-1",)
    assert "Hypothesis" not in reply.text


def test_both_ways_agree(task, pair, monkeypatch):
    from leaderboard.board.matrix import read_matrix

    matrix = read_matrix(task)
    exact = compared(task, matrix).rows[0].test_result
    monkeypatch.setattr(comparing, "MAX_EXAMPLES", 0)
    drawn = compared(task, matrix).rows[0].test_result
    assert drawn.method == "resamples"
    assert drawn.value == pytest.approx(exact.value)
    assert drawn.low == pytest.approx(exact.low, abs=0.03)
    assert drawn.high == pytest.approx(exact.high, abs=0.03)


def test_what_was_read_is_kept(client, pair, monkeypatch):
    first = ask(client, pair).text
    monkeypatch.setattr(comparing, "iter_side_by_side", None)
    assert tables(ask(client, pair).text) == tables(first)


def test_sets_without_a_weight_have_no_resamples(client, task):
    set_version(task, "counts")
    version = set_version(task, "extra", rows=rows_of(60), access="standard")
    pair = [accepted_model(task, name=name, is_published=True) for name in ("Ada", "Ben")]
    for model in pair:
        answered(model, version, lambda n: n % 2)
    reply = ask(client, pair)
    found = {row[0]: row[4] for row in tables(reply.text)[0]}
    assert reply.context["tested"] == len(found) == 1
    # What could not be tested is folded below.
    untested = reply.text.partition('id="untested"')[2]
    assert "extra v1, Accuracy" in found
    assert "extra v1, Macro F1" in untested


def test_models_without_a_set_in_common(client, task, version):
    pair = [accepted_model(task, name=name, is_published=True) for name in ("Ada", "Ben")]
    answered(pair[0], version, lambda n: n % 8)
    assert not ask(client, pair).context["found"].rows


# Examples


def hypotheses(page):
    return [int(n) for n in re.findall(r"Hypothesis (\d+)\.", page)]


def test_readers_see_where_answers_differ_but_not_which_is_right(client, pair):
    page = ask(client, pair, set="round-1").text
    found = hypotheses(page)
    assert found[:3] == [0, 8, 16]
    assert len(found) == comparing.PAGE_EXAMPLES
    assert "<dt data-right>" not in page
    more = hypotheses(ask(client, pair, set="round-1", page=2).text)
    assert not set(found) & set(more)
    assert ask(client, pair, set="round-1", page=50).status_code == 404


def test_owners_see_what_is_right(client, task, pair):
    owner = UserFactory()
    TaskMember.objects.create(task=task, user=owner, role="owner")
    client.force_login(owner)
    assert "<dt data-right>" in ask(client, pair, set="round-1").text


def test_a_release_shows_everybody_what_is_right_as_the_page_of_wrong_answers_does(
    client, pair, version
):
    release_of(version, private_test=True)
    assert "<dt data-right>" not in ask(client, pair, set="round-1").text
    version.refresh_from_db()
    version.dataset.options = {}
    version.dataset.save()
    page = ask(client, pair, set="round-1").text
    assert "<dt data-right>" in page
    (run,) = pair[0].runs.filter(suite="plain")
    assert client.get(f"/m/{pair[0].pk}/runs/{run.pk}/wrong/").status_code == 200
    assert re.findall(r"<dt>ID</dt><dd><code>(u\d+)</code>", page)


def test_which_of_two_wrong_answers_is_no_clue(client, task, version):
    """Readers get both wrong answers too, so that a difference tells nothing about the gold."""
    pair = [accepted_model(task, name=name, is_published=True) for name in ("Ada", "Ben")]
    answered(pair[0], version, lambda n: False)
    run = answered(pair[1], version, lambda n: False)
    lines = b"".join(
        build_prediction_line(f"u{n}", Answer(LABELS[(n + 2) % 3])) for n in range(240)
    )
    run.predictions.save("q.jsonl.gz", ContentFile(gzip.compress(lines)))
    assert hypotheses(ask(client, pair, set="round-1").text) == [*range(20)]


def test_sensitive_texts_are_shielded(client, task, pair):
    task.config_text = re.sub(
        "^content_warning: .*$", "content_warning: {text: Hate.}", task.config_text, flags=re.M
    )
    task.save()
    assert task.is_sensitive
    page = ask(client, pair, set="round-1").text
    assert page.count('<details class="shield">') == comparing.PAGE_EXAMPLES


# Who sees what

MODELS = {"Ada", "Draft", "Secret name", "Anonymous 1"}
ROLES = {
    "nobody": {"Ada", "Anonymous 1"},
    "stranger": {"Ada", "Anonymous 1"},
    "author": MODELS - {"Anonymous 1"},
    "editor": MODELS - {"Anonymous 1"},
    "superuser": MODELS - {"Anonymous 1"},
}


@pytest.mark.parametrize("who", ROLES)
def test_who_sees_which_models_sets_and_examples(client, task, who):
    author = UserFactory()
    ada = accepted_model(task, name="Ada", is_published=True)
    draft = accepted_model(task, owner=author, name="Draft")
    tomorrow = timezone.now().date() + timedelta(days=1)
    secret = accepted_model(
        task, owner=author, name="Secret name", is_published=True, anonymous_until=tomorrow
    )
    sets = [
        set_version(task, "private", rows=rows_of(60)),
        set_version(task, "public", rows=rows_of(30), may_leave=True),
        set_version(task, "sealed", rows=rows_of(45), access="hidden", may_leave=True),
    ]
    for one in sets:
        for model, step in ((ada, 2), (draft, 3), (secret, 5)):
            answered(model, one, lambda n, step=step: n % step)
    user = author if who == "author" else UserFactory(is_superuser=who == "superuser")
    if who == "editor":
        TaskMember.objects.create(task=task, user=user, role="editor")
    if who != "nobody":
        client.force_login(user)
    is_inside, is_editor = who in ("author", "editor", "superuser"), who in ("editor", "superuser")

    page = client.get(URL, {"mine": "1"}).text
    assert {name for name in MODELS if name in page} == ROLES[who]
    plain = client.get(URL).text
    assert {name for name in MODELS if name in plain} == {"Ada", "Anonymous 1"}
    assert ask(client, (ada, draft)).status_code == 404
    reply = ask(client, (ada, draft), mine="1")
    assert reply.status_code == (200 if is_inside else 404)
    assert ("Draft" in reply.text) == is_inside

    for name in ("private", "public", "sealed"):
        text = ask(client, (ada, secret), set=name, mine="1").text
        assert "sealed" not in text
        assert bool(hypotheses(text)) == (name == "public" or (is_editor and name == "private"))
        assert ("<dt data-right>" in text) == (is_editor and name != "sealed")


def test_what_cannot_be_compared(client, task, pair):
    hidden = accepted_model(task, name="Draft")
    for other in (hidden.pk, "nonsense", "00000000-0000-0000-0000-000000000000"):
        reply = client.get(URL, {"a": pair[0].pk, "b": other})
        assert reply.status_code == 404
        assert [*reply.context["errors"]] == ["b"]
        assert '<a href="#b">' in reply.text
        assert "<title>Error: " in reply.text
    same = client.get(URL, {"a": pair[0].pk, "b": pair[0].pk})
    assert (same.status_code, [*same.context["errors"]]) == (422, ["b"])
    one = client.get(URL, {"a": pair[1].pk})
    assert one.status_code == 200
    assert f'<option value="{pair[1].pk}" selected>Ben' in one.text
    task.is_visible = False
    task.save()
    assert ask(client, pair).status_code == 404


def test_with_one_model_there_is_a_way_to_another(client, task):
    accepted_model(task, name="Ada", is_published=True)
    page = client.get(URL).text
    assert 'href="/t/nli/submit/"' in page
    assert 'name="a"' not in page


def test_query_count_of_comparing(as_alice, task):
    models = fill_board(task, models=2)
    url = f"{URL}?a={models[0].pk}&b={models[1].pk}"
    few = count(as_alice, url)
    fill_board(task, models=9, first=2)
    version = set_version(task, "round-3", rows=rows_of(30))
    for model in models:
        answered(model, version, lambda n: n % 2)
    cache.clear()
    assert count(as_alice, url) == few
    check("compare", few)


def test_a_dot_lies_on_the_side_of_the_model_that_leads(task, version, pair):
    from leaderboard.board.matrix import read_matrix
    from leaderboard.compare.figures import _build_axis_row, build_difference_axis

    names = ("Ada", "Ben")
    found = compared(task, read_matrix(task))
    axis = build_difference_axis(found.rows, names)
    assert [text for _, text in axis.ticks] == [text for _, text in reversed(axis.ticks)]
    row = next(row for row in found.rows if row.metric == "accuracy")
    assert row.cell.value > 0  # Ada leads
    drawn = _build_axis_row(row, names)
    assert drawn.value < 0  # which is her side
    assert drawn.text.lstrip("+").startswith(f"{row.cell.value:.1f}")
