"""Reading a page's HTML."""

import re

ATTRIBUTES = r"(?:\"[^\"]*\"|'[^']*'|[^\"'>])*"
VERBATIM = re.compile(
    rf"(<(pre|textarea|script)\b{ATTRIBUTES}>|<(p) class=\"(?:lines|text)\"[^>]*>)"
    r"(.*?)(?=</(?:\2|\3)>)",
    re.DOTALL,
)
BLOCKS = (
    "article|aside|body|button|caption|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|"
    "h[1-4]|head|header|html|input|label|legend|li|link|main|meta|nav|ol|option|p|progress|section|"
    "select|summary|svg|table|tbody|td|tfoot|th|thead|title|tr|ul"
)
INLINE = "a|code|em|small|span|strong|time"


def without_layout(html: str) -> str:
    """`html` on one line, without the whitespace that browsers drop and templates have."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[4])
        return f"{found[1]}\0"

    html = re.sub(r"\s+", " ", VERBATIM.sub(keep, html))
    html = re.sub(rf"(<\w+{ATTRIBUTES}?) (?=>)", r"\1", html)
    html = re.sub(rf" ?(</?(?:{BLOCKS})\b{ATTRIBUTES}>) ?", r"\1", html)
    html = re.sub(rf"(<(?:{INLINE})\b{ATTRIBUTES}>) ", r"\1", html)
    html = re.sub(rf" (</(?:{INLINE})>)", r"\1", html)
    return re.sub("\0", lambda _: kept.pop(0), html)
