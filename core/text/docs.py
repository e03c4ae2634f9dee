"""The pages of `docs/` as the site shows them: safe HTML, an anchor at each heading and key."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import nh3
from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

FOLDER = Path(settings.BASE_DIR) / "docs"
NAME = re.compile(r"[a-z0-9-]+")
PICTURES = "pictures"
PICTURE_NAME = re.compile(r"[a-z0-9-]+\.(?:png|svg|webp)")
_PAGE = re.compile(r"(?P<name>[a-z0-9-]+)\.md(?P<anchor>#.*)?")
_renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
_TAGS = {
    *("p", "br", "hr", "strong", "em", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("img", "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "img": {"src", "alt", "loading"}, "code": {"id"}}
_ATTRIBUTES |= {f"h{n}": {"id"} for n in range(1, 7)}

SCROLLING = {
    "<pre>": '<pre tabindex="0">',
    "<table>": '<div class="scroll" tabindex="0"><table>',
    "</table>": "</table></div>",
}
"""What may be wider than a phone scrolls by itself, by keyboard too."""


@dataclass(frozen=True)
class DocsPage:
    """A page of the documentation: its first heading, the rest as HTML, and its anchors."""

    title: str
    html: SafeString
    anchors: frozenset[str]


def docs_names() -> list[str]:
    """Return the names of the pages in this installation."""
    return sorted(path.stem for path in FOLDER.glob("*.md") if NAME.fullmatch(path.stem))


def docs_page(name: str) -> DocsPage | None:
    """Return the page with this name, or None."""
    path = FOLDER / f"{name}.md"
    if not NAME.fullmatch(name) or not path.is_file():
        return None
    return _rendered(name, path.stat().st_mtime_ns)


def slug(heading: str) -> str:
    """Return the anchor for a heading.

    >>> slug("Fields (`context`, `input`)")
    'fields-context-input'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@lru_cache(64)  # an installation has about thirty, which change when it is upgraded
def _rendered(name: str, changed_ns: int) -> DocsPage:
    # `changed_ns` is part of the cache's key only: a page of a new release is rendered again.
    tokens = _renderer.parse((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
    title, anchors = name, set[str]()
    if tokens and tokens[0].tag == "h1":
        title = tokens[1].content
        # Three of a heading: its start, its text and its end.
        tokens = tokens[3:]
    section = ""
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            section = slug(tokens[place + 1].content)
            token.attrSet("id", section)
            anchors.add(section)
        elif token.type == "inline":
            if place > 1 and tokens[place - 2].type == "list_item_open":
                anchors |= _mark_keys(token, section)
            token.children = [
                _linked(child)
                for child in token.children or ()
                if child.type != "image" or _show_picture(child)
            ]
    html = _renderer.renderer.render(tokens, _renderer.options, {})
    clean = nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, link_rel="nofollow")
    for plain, scrolling in SCROLLING.items():
        clean = clean.replace(plain, scrolling)
    return DocsPage(title, mark_safe(clean), frozenset(anchors))  # noqa: S308  (sanitised above)


def _mark_keys(line: Token, section: str) -> set[str]:
    """Add anchors for the keys that a list item explains, and return the anchors.

    An anchor is the section with the key, such as `validation.votes`.
    """
    anchors: set[str] = set()
    for token in line.children or ():
        if token.type == "text" and ":" in token.content:
            break
        if token.type == "code_inline" and re.fullmatch(r"\w+", token.content):
            anchor = f"{section}.{token.content}"
            token.attrSet("id", anchor)
            anchors.add(anchor)
    return anchors


def _linked(token: Token) -> Token:
    """Resolve a token's link to another page; drop the target of a link to another file."""
    if token.type != "link_open":
        return token
    target = str(token.attrGet("href") or "")
    if match := _PAGE.fullmatch(target):
        token.attrSet("href", f"../{match['name']}/{match['anchor'] or ''}")
    elif not target.startswith(("#", "https://", "http://", "/")):
        token.attrs.pop("href", None)
    return token


def _show_picture(token: Token) -> bool:
    """Let a picture of the folder be loaded from here; return False for any other one."""
    folder, _, name = str(token.attrGet("src") or "").partition("/")
    if folder != PICTURES or picture_path(name) is None:
        return False
    token.attrSet("src", f"../../{PICTURES}/{name}")
    token.attrSet("loading", "lazy")
    return True


def picture_path(name: str) -> Path | None:
    """Return the file of a page's picture by its name, or None."""
    path = FOLDER / PICTURES / name
    return path if PICTURE_NAME.fullmatch(name) and path.is_file() else None


SECTIONS = {
    **dict.fromkeys(("context", "input", "output"), "fields-context-input-output-metadata"),
    **dict.fromkeys(("metrics", "leaderboard"), "metrics-and-leaderboard"),
}
"""Where docs/task-config.md explains keys that have no section of their own."""
CONFIG_PAGE = "task-config"


def anchor_of_key(path: str) -> str:
    """Return the anchor in docs/task-config.md for a configuration key such as `input[0].type`.

    This is the key itself if the page explains it in its own line, otherwise the section.
    """
    page = docs_page(CONFIG_PAGE)
    keys: Sequence[str] = re.findall(r"[A-Za-z_]\w*", path)
    if page is None or not keys:
        return ""
    section = SECTIONS.get(keys[0], keys[0])
    tried = [f"{section}.{key}" for key in keys[:0:-1]] + [f"{section}.{keys[0]}", section]
    tried.append(f"top-level.{keys[0]}")
    return next((anchor for anchor in tried if anchor in page.anchors), "top-level")
