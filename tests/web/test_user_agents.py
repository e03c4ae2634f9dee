"""Browsers are named as people know them."""

import pytest

from core.accounts.user_agents import describe_user_agent

MOZILLA = "Mozilla/5.0"
WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"{MOZILLA} (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            "Firefox on Linux",
        ),
        (
            f"{MOZILLA} (Windows NT 10.0) {WEBKIT} Chrome/126.0.0.0 Safari/537.36",
            "Chrome on Windows",
        ),
        (
            f"{MOZILLA} (Windows NT 10.0) {WEBKIT} Chrome/126.0 Safari/537.36 Edg/126.0",
            "Edge on Windows",
        ),
        (
            f"{MOZILLA} (Macintosh; Intel Mac OS X 10_15_7) {WEBKIT} Version/17.4 Safari/605.1.15",
            "Safari on macOS",
        ),
        (
            f"{MOZILLA} (iPhone; CPU iPhone OS 17_4 like Mac OS X) {WEBKIT} CriOS/126.0",
            "Chrome on iPhone",
        ),
        (
            f"{MOZILLA} (Linux; Android 14) {WEBKIT} Chrome/126.0 Mobile Safari/537.36",
            "Chrome on Android",
        ),
        ("Lynx/2.9.0 libwww-FM/2.14", "Lynx"),
        ("curl/8.5", "curl"),
        ("", "Unknown browser"),
    ],
)
def test_a_browser_is_named_with_its_system(text, words):
    assert describe_user_agent(text) == words
