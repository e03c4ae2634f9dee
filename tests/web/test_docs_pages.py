"""The pages of docs/ on the site, and where a key of a configuration is explained."""

import ast
import re
from pathlib import Path

import pytest

from core.text import docs, docs_search
from core.text.docs import build_anchor, get_docs_page, list_docs_names
from scripts.ruler_pictures import draw_ruler
from tasks.models import TaskMember
from tests.support.messages import messages_of_python
from tests.support.variables import APPS

ROOT = Path(__file__).parents[2]
NAMED_DOCUMENT = re.compile(r"docs/[a-z-]+\.md")

CONTENTS_LINK = (
    r'<a\s+href="/docs/([a-z0-9-]+)/"\s+lang="en"\s+dir="ltr"\s*( aria-current="page")?\s*>'
)


def test_every_page_is_readable_without_an_account_and_links_lead_somewhere(client, db):
    names = list_docs_names()
    assert {"owners", "task-config", "statistics"} <= {*names}
    listed = client.get("/docs/")
    linked = [name for group in listed.context["groups"] for name, _ in group.pages]
    assert sorted(linked) == names
    anchors = {name: get_docs_page(name).anchors for name in names}
    for name in names:
        page = client.get(f"/docs/{name}/")
        assert page.status_code == 200
        html = str(get_docs_page(name).html)
        for other, anchor in re.findall(r'href="(?:\.\./([a-z0-9-]+)/)?#?([^"]*)"', html):
            if other:
                assert other in names, (name, other)
                assert not anchor or anchor in anchors[other], (name, other, anchor)
    assert client.get("/docs/no-such/").status_code == 404
    assert client.get("/docs/..%2fREADME/").status_code == 404


def test_what_a_page_could_do_is_taken_out(tmp_path, monkeypatch):
    text = "# T\n\n<script>x</script>\n\n[a](javascript:x) [b](../README.md) ![c](p.png)\n"
    (tmp_path / "odd.md").write_text(text)
    monkeypatch.setattr(docs, "FOLDER", tmp_path)
    page = get_docs_page("odd")
    assert page.title == "T"
    assert not re.search(r"<script|javascript:x\"|href=\"\.\.|<img", str(page.html))
    (tmp_path / "plain.md").write_text("No heading")
    assert get_docs_page("plain").title == "plain"


def test_pictures_of_pages_are_shown_and_no_other_file(client, db):
    html = str(get_docs_page("first-model").html) + str(
        get_docs_page("how-to-write-and-judge").html
    )
    sources = re.findall(r'<img src="([^"]+)"', html)
    assert sources
    # Their places are kept while they load.
    assert html.count('width="') == html.count('height="') == len(sources)
    for source in sources:
        picture = client.get(source.replace("../", "/docs/"))
        assert picture["Content-Type"].startswith("image/")
        assert b"".join(picture.streaming_content)
    for name in ("no-such.png", "..%2fowners.md", "README.md"):
        assert client.get(f"/docs/pictures/{name}").status_code == 404


def test_the_page_about_rulers_has_pictures_that_fit_a_phone(client, db):
    html = client.get("/docs/ruler/").text
    pictures = dict(re.findall(r'<img src="../pictures/(ruler-[^"]+)" alt="([^"]+)"', html))
    assert sorted(pictures) == ["ruler-board.png", "ruler-rounds.svg"]
    drawing = b"".join(client.get("/docs/pictures/ruler-rounds.svg").streaming_content).decode()
    # As the program draws it now, and wide enough for its words on a screen of 320 pixels.
    assert drawing == draw_ruler()
    assert int(re.search(r'<svg [^>]*width="(\d+)"', drawing)[1]) <= 360


def test_pages_follow_each_other_in_the_order_of_the_contents(client, db):
    pages = [name for name, _ in re.findall(CONTENTS_LINK, client.get("/docs/owners/").text)]
    assert sorted(pages) == list_docs_names()
    for place, name in enumerate(pages):
        html = client.get(f"/docs/{name}/").text
        neighbours = dict(re.findall(r'rel="(prev|next)" href="/docs/([a-z0-9-]+)/"', html))
        assert neighbours.get("prev") == (pages[place - 1] if place else None)
        assert neighbours.get("next") == (pages[place + 1] if name != pages[-1] else None)
        assert (name, ' aria-current="page"') in re.findall(CONTENTS_LINK, html)


def test_headings_of_a_page_are_linked_beside_it(client, db):
    html = client.get("/docs/owners/").text
    side = html.split('class="on-this-page"')[1].split("</nav>")[0]
    anchors = re.findall(r'href="#([^"]+)"', side)
    assert len(anchors) == html.count("<h2 id=") - side.count("<h2 id=")
    assert {*anchors} <= get_docs_page("owners").anchors


@pytest.mark.parametrize("old", ["/help/docs/", "/help/docs/owners/"])
def test_an_earlier_address_leads_to_the_new_one(client, db, old):
    response = client.get(old)
    assert (response.status_code, response.url) == (301, old.removeprefix("/help"))


def find_help_texts(source):
    """Yield the strings in `help_text` and `help_texts`, which forms and the admin show."""
    for node in ast.walk(ast.parse(source)):
        name = ""
        if isinstance(node, ast.keyword):
            name = node.arg
        elif isinstance(node, ast.Assign):
            name = getattr(node.targets[0], "id", "")
        if name in ("help_text", "help_texts"):
            for inner in ast.walk(node.value):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield inner.value


def test_no_page_names_a_document_without_a_link():
    probe = 'help_texts = {"a": f("docs/x.md")}; B(help_text="c")'
    assert {*find_help_texts(probe)} == {"a", "docs/x.md", "c"}
    named = []
    for room in APPS:
        for path in (ROOT / room).rglob("*.py"):
            source = path.read_text()
            texts = [*messages_of_python(source)]
            # Of models only what forms take over is shown, which say it themselves.
            if "forms" in path.stem or "admin" in path.parts:
                texts += find_help_texts(source)
            named += [(path.name, text) for text in texts if NAMED_DOCUMENT.search(text)]
    for path in (ROOT / "templates").rglob("*.*"):
        shown = re.sub(r"(?s){#.*?#}|{% comment %}.*?{% endcomment %}", "", path.read_text())
        named += [(path.name, text) for text in NAMED_DOCUMENT.findall(shown)]
    assert not named


def test_templates_link_pages_and_headings_that_are_there():
    links = []
    for path in (ROOT / "templates").rglob("*.html"):
        links += re.findall(
            r"{% url 'docs-page' '([a-z0-9-]+)' %}(?:#([\w.-]+))?", path.read_text()
        )
    assert len(links) > 10
    for name, anchor in links:
        assert get_docs_page(name), name
        assert not anchor or anchor in get_docs_page(name).anchors, (name, anchor)


def find_pages(client, question):
    html = client.get("/docs/", {"q": question}).text
    assert ('id="results"' in html) != ('id="no-results"' in html)
    return re.findall(
        r'href="/docs/([a-z0-9-]+)/(?:#([^"]+))?"', html.split("<main")[1].split("<footer")[0]
    )


@pytest.mark.parametrize("question", ["resolve", "unfollow", "retry", "Retries", "delete account"])
def test_everyday_words_are_found(client, db, question):
    assert find_pages(client, question)


def test_a_result_leads_to_its_section_and_marks_the_words(client, db, tmp_path, monkeypatch):
    text = "# Trees\n\nTall.\n\n## Oaks (`oak`)\n\nAcorns & more\n<here>.\n\n### Elms\n\nNone."
    (tmp_path / "trees.md").write_text(text)
    (tmp_path / "birds.md").write_text("# Birds\n\nThey eat acorns.\n")
    monkeypatch.setattr(docs, "FOLDER", tmp_path)
    assert find_pages(client, "oak acorn") == [("trees", "oaks-oak")]
    html = client.get("/docs/", {"q": "acorn"}).text
    assert "<p><mark>Acorns</mark> &amp; more &lt;here&gt;.</p>" in html
    assert {name for name, _ in find_pages(client, "acorns")} == {"trees", "birds"}
    assert find_pages(client, "trees") == [("trees", "")]
    assert find_pages(client, "elms") == [("trees", "elms")]
    assert not find_pages(client, "oak birds")


@pytest.mark.parametrize("question", ["", " ", "?", "the", "a" * 5000, "<b>", "(", "zebra " * 50])
def test_any_question_is_answered(client, db, question):
    assert client.get("/docs/", {"q": question}).status_code == 200


def test_of_a_long_question_the_beginning_is_read(client, db):
    beginning = "retry " * 30
    answer = client.get("/docs/", {"q": beginning + "a" * 100_000})
    assert len(answer.context["question"]) == docs_search.MAX_QUESTION_CHARS
    cut = f"{beginning}{'zebra ' * 5}"[: docs_search.MAX_QUESTION_CHARS]
    pages = [(name, get_docs_page(name)) for name in list_docs_names()]
    assert not docs_search.search_pages(pages, cut)
    behind = "retry".ljust(docs_search.MAX_QUESTION_CHARS) + "zebra"
    assert docs_search.search_pages(pages, behind)


def test_single_letters_are_looked_up_alone_only(client, db, tmp_path, monkeypatch):
    (tmp_path / "trees.md").write_text("# Trees\n\n## Oaks\n\nTall.\n\n## C\n\nNone.")
    monkeypatch.setattr(docs, "FOLDER", tmp_path)
    assert find_pages(client, "c oaks z") == [("trees", "oaks")]
    assert find_pages(client, "c") == [("trees", "c")]
    assert not find_pages(client, "c z")


def test_excerpts_are_cut_of_what_is_shown(client, db, monkeypatch):
    cut = []
    monkeypatch.setattr(docs_search, "_cut_excerpt", lambda term, text: cut.append(text) or "")
    # A word of nearly all sections.
    assert len(find_pages(client, "task")) == len(cut) == docs_search.MAX_RESULTS


@pytest.mark.parametrize(
    ("path", "anchor"),
    [
        ("validation.votes.needed", "validation.votes"),
        ("validation.asks", "validation.asks"),
        ("input[0].judges_see", "fields-context-input-output-metadata.judges_see"),
        ("verdict", "verdict"),
        ("metrics.main", "metrics-and-leaderboard.main"),
        ("language", "top-level.language"),
        ("no_such_key", "top-level"),
        ("", ""),
    ],
)
def test_a_key_leads_to_its_paragraph(path, anchor):
    assert build_anchor(path) == anchor
    assert not anchor or anchor in get_docs_page("task-config").anchors


def test_a_problem_of_the_configuration_links_the_key(as_alice, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    text = nli.task.config_text.replace("mode: label", "mode: none")
    page = as_alice.post("/own/nli/config/check/", {"text": text}).text
    assert 'href="/docs/task-config/#validation.mode"' in page
    assert 'href="/docs/owners/"' in as_alice.get("/own/nli/").text


def test_an_installation_without_the_folder_has_no_pages(client, db, tmp_path, monkeypatch):
    monkeypatch.setattr(docs, "FOLDER", tmp_path / "gone")
    assert client.get("/docs/").status_code == 200
    assert client.get("/docs/owners/").status_code == 404
    assert build_anchor("verdict") == ""


def test_the_contents_introduce_the_first_pages_of_each_reader(client, db):
    groups = client.get("/docs/").context["groups"]
    for group in groups:
        assert len(group.first_pages) == 3
        for _name, page in group.first_pages:
            assert 20 < len(page.first_sentence) < 260
            assert page.first_sentence[-1] in ".?"
            assert "```" not in page.first_sentence
    assert get_docs_page("demo").first_sentence.endswith("looks like in use.")
