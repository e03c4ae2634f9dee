"""Convert owners' Markdown to HTML that is safe to show on pages."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import nh3
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator
from markdown_it import MarkdownIt
from markdown_it.token import Token

_renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
_ALLOWED_TAGS = {
    *("p", "br", "hr", "strong", "em", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}


@lru_cache(256)  # owners' texts are few and shown on each page
def render_markdown(text: str) -> SafeString:
    """Render CommonMark and tables to HTML without scripts, images and styles.

    Headings are lowered by two levels, so that they start at h3.
    """
    return _sanitise_html(_renderer.render(text))


def render_excerpt(text: str, max_chars: int) -> SafeString:
    """Render the beginning of a text, with an ellipsis if it has more than `max_chars` characters.

    Tags do not count, and those that are open at the end are closed.
    """
    # The HTML and not the source is cut, because half a list or table would be read as text.
    html = Truncator(render_markdown(text)).chars(max_chars, html=True)
    return mark_safe(html)  # noqa: S308  (sanitised before it was cut)


def _sanitise_html(html: str) -> SafeString:
    """Return rendered HTML with lowered headings and only the allowed tags."""
    # The deepest first: otherwise a heading would be moved twice.
    for level in (4, 3, 2, 1):  # a page has one h1 and our sections are h2
        html = html.replace(f"<h{level}>", f"<h{level + 2}>").replace(
            f"</h{level}>", f"</h{level + 2}>"
        )
    clean_html = nh3.clean(
        html, tags=_ALLOWED_TAGS, attributes={"a": {"href", "title"}}, link_rel="nofollow"
    )
    return mark_safe(clean_html)  # noqa: S308  (sanitised in the line above)


class Section(NamedTuple):
    """A section of a text: its title and the HTML that follows. The first title may be empty."""

    title: SafeString
    body: SafeString


@lru_cache(256)
def render_sections(text: str) -> tuple[Section, ...]:
    """Render CommonMark to one section per title, after the text that precedes the first title.

    Titles are the headings of the highest level that occurs, or otherwise paragraphs of bold words
    only. They must not be in a list or quotation.
    """
    environment: dict[str, object] = {}
    tokens = _renderer.parse(text, environment)

    def render(first: int, last: int | None) -> SafeString:
        return _sanitise_html(
            _renderer.renderer.render(tokens[first:last], _renderer.options, environment)
        )

    starts = _find_titles(tokens)
    ends = [*starts, None]
    sections = [Section(SafeString(), render(0, ends[0]))]
    for start, end in zip(starts, ends[1:], strict=True):
        # A title is three tokens: its opening, its words and its end.
        sections.append(Section(render(start + 1, start + 2), render(start + 3, end)))
    return tuple(sections)


def _find_titles(tokens: Sequence[Token]) -> list[int]:
    """Return the indices of the tokens that open titles.

    Titles are the headings of the highest level that occurs, or otherwise bold paragraphs.
    """
    top_level_indices = [index for index, token in enumerate(tokens) if token.level == 0]
    headings = [index for index in top_level_indices if tokens[index].type == "heading_open"]
    highest = min((tokens[index].tag for index in headings), default="")
    if highest:
        return [index for index in headings if tokens[index].tag == highest]
    paragraphs = [index for index in top_level_indices if tokens[index].type == "paragraph_open"]
    return [index for index in paragraphs if _is_bold(tokens[index + 1].children or [])]


def _is_bold(pieces: Sequence[Token]) -> bool:
    """Return whether the whole paragraph is bold."""
    types = [piece.type for piece in pieces if piece.type != "text" or piece.content]
    closes = types.count("strong_close")
    return closes == 1 and types[0] == "strong_open" and types[-1] == "strong_close"
