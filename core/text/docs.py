"""Render the pages of `docs/` for the site: safe HTML, an anchor at each heading and key."""

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import nh3
from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

FOLDER = Path(settings.BASE_DIR) / "docs"
NAME_PATTERN = re.compile(r"[a-z0-9-]+")
PICTURES_FOLDER = "pictures"
PICTURE_NAME_PATTERN = re.compile(r"[a-z0-9-]+\.(?:png|svg|webp)")
_PAGE_LINK_PATTERN = re.compile(r"(?P<name>[a-z0-9-]+)\.md(?P<anchor>#.*)?")
_renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
_ALLOWED_TAGS = {
    *("p", "br", "hr", "strong", "em", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("img", "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_ALLOWED_ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"id"},
    "img": {"src", "alt", "loading", "width", "height"},
}
_ALLOWED_ATTRIBUTES |= {f"h{n}": {"id"} for n in range(1, 7)}

SCROLLING_ATTRIBUTES = {
    "<pre>": '<pre tabindex="0">',
    "<table>": '<div class="table-scroll" tabindex="0"><table>',
    "</table>": "</table></div>",
}
"""Replacements of tags that let wide elements scroll on phones and by keyboard."""


@dataclass(frozen=True)
class Section:
    """A part of a page under one heading.

    level: 2 or 3. text: the plain text.
    """

    level: int
    anchor: str
    title: str
    text: str


@dataclass(frozen=True)
class DocsPage:
    """A page of the documentation.

    title: its first heading. html: the page without this heading. sections: the first section is
    the text before the first subheading, with an empty anchor and title.
    """

    title: str
    html: SafeString
    anchors: frozenset[str]
    sections: tuple[Section, ...] = ()

    @property
    def first_sentence(self) -> str:
        """Return the first sentence of the page; "" if it has no text before its headings."""
        text = self.sections[0].text if self.sections else ""
        # What announces a list or an example is a sentence of its own without them.
        sentence = re.split(r"(?<=[.:?]) ", text, maxsplit=1)[0]
        return sentence.removesuffix(":") + "." if sentence.endswith(":") else sentence


def list_docs_names() -> list[str]:
    """Return the sorted names of the documentation pages in this installation."""
    return sorted(path.stem for path in FOLDER.glob("*.md") if NAME_PATTERN.fullmatch(path.stem))


def get_docs_page(name: str) -> DocsPage | None:
    """Return the documentation page with this name, or None."""
    path = FOLDER / f"{name}.md"
    if not NAME_PATTERN.fullmatch(name) or not path.is_file():
        return None
    return _render_page(name, path.stat().st_mtime_ns)


def build_slug(heading: str) -> str:
    """Return the anchor for a heading.

    >>> build_slug("Fields (`context`, `input`)")
    'fields-context-input'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@lru_cache(64)  # an installation has about thirty, which change when it is upgraded
def _render_page(name: str, changed_ns: int) -> DocsPage:
    # `changed_ns` is part of the cache's key only: a page of a new release is rendered again.
    tokens = _renderer.parse((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
    title, anchors = name, set[str]()
    if tokens and tokens[0].tag == "h1":
        title = tokens[1].content
        # Three of a heading: its start, its text and its end.
        tokens = tokens[3:]
    section = ""
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            section = build_slug(tokens[index + 1].content)
            token.attrSet("id", section)
            anchors.add(section)
        elif token.type == "inline":
            if index > 1 and tokens[index - 2].type == "list_item_open":
                anchors |= _mark_keys(token, section)
            token.children = [
                _resolve_link(child)
                for child in token.children or ()
                if child.type != "image" or _show_picture(child)
            ]
    html = _renderer.renderer.render(tokens, _renderer.options, {})
    clean_html = nh3.clean(
        html, tags=_ALLOWED_TAGS, attributes=_ALLOWED_ATTRIBUTES, link_rel="nofollow"
    )
    for tag, scrolling_tag in SCROLLING_ATTRIBUTES.items():
        clean_html = clean_html.replace(tag, scrolling_tag)
    safe_html = mark_safe(clean_html)  # noqa: S308  (sanitised above)
    return DocsPage(title, safe_html, frozenset(anchors), _find_sections(tokens))


def _find_sections(tokens: Sequence[Token]) -> tuple[Section, ...]:
    """Return the page's plain text, split at headings of levels 2 and 3.

    tokens: the headings already have anchors.
    """
    sections = [Section(2, "", "", "")]
    for index, token in enumerate(tokens):
        is_heading = token.type == "inline" and tokens[index - 1].tag in ("h2", "h3")
        if is_heading:
            heading = tokens[index - 1]
            anchor = str(heading.attrGet("id") or "")
            sections.append(Section(int(heading.tag[1]), anchor, _get_plain_text(token), ""))
        elif token.type in ("inline", "fence"):
            text = _get_plain_text(token) if token.type == "inline" else token.content.strip()
            last_section = sections[-1]
            sections[-1] = replace(last_section, text=f"{last_section.text} {text}".strip())
    return tuple(sections)


def _get_plain_text(line: Token) -> str:
    """Return the text of a line without its markup."""
    texts = []
    for token in line.children or ():
        if token.type in ("text", "code_inline"):
            texts.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            texts.append(" ")
    return "".join(texts)


def _mark_keys(line: Token, section: str) -> set[str]:
    """Add anchors for the keys that a list item explains; return the anchors.

    An anchor is the section's anchor and the key, such as `validation.votes`.
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


def _resolve_link(token: Token) -> Token:
    """Resolve a token's link to another page; drop the target of a link to another file."""
    if token.type != "link_open":
        return token
    # Pages lie beside each other, in the folder and on the site.
    target = str(token.attrGet("href") or "")
    if match := _PAGE_LINK_PATTERN.fullmatch(target):
        token.attrSet("href", f"../{match['name']}/{match['anchor'] or ''}")
    elif not target.startswith(("#", "https://", "http://", "/")):
        token.attrs.pop("href", None)
    return token


def _show_picture(token: Token) -> bool:
    """Point a picture of the docs folder to its URL; return False for any other picture."""
    folder, _, name = str(token.attrGet("src") or "").partition("/")
    path = find_picture_path(name)
    if folder != PICTURES_FOLDER or path is None:
        return False
    token.attrSet("src", f"../{PICTURES_FOLDER}/{name}")
    token.attrSet("loading", "lazy")
    if path.suffix == ".png":
        # A browser that knows the size keeps the place, so that nothing moves when it comes.
        width, height = _measure_png(path)
        token.attrSet("width", str(width))
        token.attrSet("height", str(height))
    return True


def _measure_png(path: Path) -> tuple[int, int]:
    """Return the width and height of a PNG in pixels, from the file's first block."""
    with path.open("rb") as file:
        return struct.unpack(">II", file.read(24)[16:])


def find_picture_path(name: str) -> Path | None:
    """Return the path of a page's picture with this name, or None."""
    path = FOLDER / PICTURES_FOLDER / name
    return path if PICTURE_NAME_PATTERN.fullmatch(name) and path.is_file() else None


SECTIONS = {
    **dict.fromkeys(("context", "input", "output"), "fields-context-input-output-metadata"),
    **dict.fromkeys(("metrics", "leaderboard"), "metrics-and-leaderboard"),
}
"""The section of docs/task-config.md that explains a key without a section of its own."""
CONFIG_PAGE = "task-config"


def build_anchor(path: str) -> str:
    """Return the anchor in docs/task-config.md for a configuration key such as `input[0].type`.

    This is the key's own anchor if the page explains it in a line of its own, otherwise its
    section. Returns "top-level" if the page has neither, and "" without a page or a key.
    """
    page = get_docs_page(CONFIG_PAGE)
    keys: Sequence[str] = re.findall(r"[A-Za-z_]\w*", path)
    if page is None or not keys:
        return ""
    section = SECTIONS.get(keys[0], keys[0])
    candidate_anchors = [f"{section}.{key}" for key in keys[:0:-1]] + [
        f"{section}.{keys[0]}",
        section,
    ]
    candidate_anchors.append(f"top-level.{keys[0]}")
    return next((anchor for anchor in candidate_anchors if anchor in page.anchors), "top-level")
