"""The pages of docs/ on the site, and where a key of a configuration is explained."""

import re

import pytest

from core.text import docs
from core.text.docs import anchor_of_key, docs_names, docs_page
from tasks.models import TaskMember


def test_every_page_is_readable_without_an_account_and_links_lead_somewhere(client, db):
    names = docs_names()
    assert {"owners", "task-config", "statistics"} <= {*names}
    listed = client.get("/help/docs/")
    linked = {name for _, pages in listed.context["groups"] for name, _ in pages}
    assert linked <= {*names}
    anchors = {name: docs_page(name).anchors for name in names}
    for name in names:
        page = client.get(f"/help/docs/{name}/")
        assert page.status_code == 200
        html = str(docs_page(name).html)
        for other, anchor in re.findall(r'href="(?:\.\./([a-z0-9-]+)/)?#?([^"]*)"', html):
            if other:
                assert other in names, (name, other)
                assert not anchor or anchor in anchors[other], (name, other, anchor)
    assert client.get("/help/docs/no-such/").status_code == 404
    assert client.get("/help/docs/..%2fREADME/").status_code == 404


def test_what_a_page_could_do_is_taken_out(tmp_path, monkeypatch):
    text = "# T\n\n<script>x</script>\n\n[a](javascript:x) [b](../README.md) ![c](p.png)\n"
    (tmp_path / "odd.md").write_text(text)
    monkeypatch.setattr(docs, "FOLDER", tmp_path)
    page = docs_page("odd")
    assert page.title == "T"
    assert not re.search(r"<script|javascript:x\"|href=\"\.\.|<img", str(page.html))
    (tmp_path / "plain.md").write_text("No heading")
    assert docs_page("plain").title == "plain"


def test_pictures_of_pages_are_shown_and_no_other_file(client, db):
    html = str(docs_page("first-model").html) + str(docs_page("how-to-write-and-judge").html)
    sources = re.findall(r'<img src="([^"]+)"', html)
    assert sources
    for source in sources:
        picture = client.get(source.replace("../../", "/help/"))
        assert picture["Content-Type"].startswith("image/")
        assert b"".join(picture.streaming_content)
    for name in ("no-such.png", "..%2fowners.md", "README.md"):
        assert client.get(f"/help/pictures/{name}").status_code == 404


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
    assert anchor_of_key(path) == anchor
    assert not anchor or anchor in docs_page("task-config").anchors


def test_a_problem_of_the_configuration_links_the_key(as_alice, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    text = nli.task.config_text.replace("mode: label", "mode: none")
    page = as_alice.post("/own/nli/config/check/", {"text": text}).text
    assert 'href="/help/docs/task-config/#validation.mode"' in page
    assert 'href="/help/docs/owners/"' in as_alice.get("/own/nli/").text


def test_an_installation_without_the_folder_has_no_pages(client, db, tmp_path, monkeypatch):
    monkeypatch.setattr(docs, "FOLDER", tmp_path / "gone")
    assert client.get("/help/docs/").status_code == 200
    assert client.get("/help/docs/owners/").status_code == 404
    assert anchor_of_key("verdict") == ""
