"""Pieces of pages that are rendered once know nothing but what their tag names."""

from uuid import uuid4

import pytest
from django.template import Context, Template, TemplateSyntaxError
from django.utils.safestring import SafeString
from django.utils.translation import override

from dynabench.templatetags import kept


def template(text):
    return Template("{% load kept %}" + text)


def render(page, **values):
    return page.render(Context(values))


def test_a_piece_is_rendered_once_for_the_same_values():
    seen = []

    class Word:
        def __str__(self):
            seen.append(self)
            return "word"

    page, word = template("{% kept word=word %}{{ word }}{% endkept %}"), Word()
    assert [render(page, word=word) for _ in range(3)] == ["word"] * 3
    assert len(seen) == 1
    assert render(page, word="other") == "other"


def test_a_piece_knows_nothing_that_is_not_named():
    page = template("{% kept a=a %}{{ a }}{% if user or secret %}leak{% endif %}{% endkept %}")
    assert render(page, a=1, secret="alice's", user={"email": "alice@example.com"}) == "1"


def test_what_is_filled_in_differs_each_time_and_is_escaped():
    page = template("{% kept a=a filled token=token %}{{ a }} {{ token }} {{ token }}{% endkept %}")
    assert render(page, a=1, token="<x>") == "1 &lt;x&gt; &lt;x&gt;"
    assert render(page, a=1, token=SafeString("<b>")) == "1 <b> <b>"
    assert render(page, a=1, token="second") == "1 second second"


def test_an_address_can_hold_what_is_filled_in():
    page = template(
        "{% kept filled uuid=uuid %}{% url 'validation:undo' uuid as url %}{{ url }}{% endkept %}"
    )
    for uuid in (uuid4(), uuid4()):
        assert str(uuid) in render(page, uuid=uuid)


def test_safe_markup_and_the_same_text_are_two_pieces():
    page = template("{% kept text=text %}{{ text }}{% endkept %}")
    assert render(page, text=SafeString("<b>")) == "<b>"
    assert render(page, text="<b>") == "&lt;b&gt;"
    assert [render(page, text=one) for one in (1, True)] == ["1", "True"]


def test_each_language_has_its_own_piece():
    page = template("{% kept %}{% get_current_language as code %}{{ code }}{% endkept %}")
    for code in ("en", "de"):
        with override(code):
            assert render(page) == code


def test_no_more_pieces_are_kept_than_the_most(monkeypatch):
    monkeypatch.setattr(kept, "MAX_COMBINATIONS", 3)
    page = template("{% kept n=n %}{{ n }}{% endkept %}")
    assert [render(page, n=n) for n in range(8)] == [str(n) for n in range(8)]
    (node,) = page.nodelist.get_nodes_by_type(kept.CachedNode)
    assert len(node._cached_output) <= 3


@pytest.mark.parametrize("tag", ["kept a", "kept a=a other b=b", "kept a=a filled b"])
def test_a_tag_that_is_written_wrong_is_refused(tag):
    with pytest.raises(TemplateSyntaxError):
        template("{% " + tag + " %}{% endkept %}")
