"""Describe browsers by names that their users know."""

import re

from django.utils.translation import gettext as _

# The first that fits: others' names stand in most of these texts too.
BROWSERS = (
    ("Edge", r"\bEdg(?:e|A|iOS)?/"),
    ("Opera", r"\bOPR/|\bOpera\b"),
    ("Samsung Internet", r"\bSamsungBrowser/"),
    ("Firefox", r"\b(?:Firefox|FxiOS)/"),
    ("Chrome", r"\b(?:Chrome|Chromium|CriOS|HeadlessChrome)/"),
    ("Safari", r"\bVersion/[\d.]+.* Safari/"),
)
SYSTEMS = (
    ("Android", r"\bAndroid\b"),
    ("iPhone", r"\biPhone\b"),
    ("iPad", r"\biPad\b"),
    ("ChromeOS", r"\bCrOS\b"),
    ("Windows", r"\bWindows\b"),
    ("macOS", r"\bMac OS X\b|\bMacintosh\b"),
    ("Linux", r"\bLinux\b|\bX11\b"),
)


def describe_user_agent(text: str) -> str:
    """Return the browser and its system, such as "Firefox on Linux".

    For an unknown browser without a known system, return the first word of `text` up to its
    version.
    """
    browser = _find_name(BROWSERS, text)
    system = _find_name(SYSTEMS, text)
    if browser and system:
        # Translators: a browser and its system, such as "Firefox on Linux"
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or text.partition("/")[0].strip() or _("Unknown browser")


def _find_name(patterns: tuple[tuple[str, str], ...], text: str) -> str:
    """Return the name of the first pattern that occurs in the text, or an empty string."""
    for name, pattern in patterns:
        if re.search(pattern, text):
            return name
    return ""
