"""Owners' Markdown to safe HTML; the only place that marks text as safe."""

from functools import lru_cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

_renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
_TAGS = {
    *("p", "br", "hr", "strong", "em", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}


@lru_cache(256)  # owners' texts are few and shown on each page
def render_markdown(text: str) -> SafeString:
    """Render CommonMark and tables to HTML without scripts, images and styles.

    Headings start at h3.
    """
    html = _renderer.render(text)
    # The deepest first: otherwise a heading would be moved twice.
    for level in (4, 3, 2, 1):  # a page has one h1 and our sections are h2
        html = html.replace(f"<h{level}>", f"<h{level + 2}>").replace(
            f"</h{level}>", f"</h{level + 2}>"
        )
    clean = nh3.clean(html, tags=_TAGS, attributes={"a": {"href", "title"}}, link_rel="nofollow")
    return mark_safe(clean)  # noqa: S308  (sanitised in the line above)
