"""A submitted endpoint is asked by its check at once; its own words are what its owner reads."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest

from evaluation.models import Submission
from tests.support.chat_models import (  # noqa: F401
    _asks_this_machine,
    hand_in,
    version,
    worked,
)
from tests.support.chat_server import chat_server
from tests.support.submissions import url_of

SECRET = "tarn-of-no-digits-middle-lund"


@pytest.fixture
def task(nli):
    return nli.task


@pytest.mark.parametrize(
    ("behaviours", "key", "words"),
    [
        ({}, "", "The model `m` does not exist"),
        ({"m": lambda messages: "neutral"}, "other", "is no API key"),
        ({"m": lambda messages: 400}, "", "as the test wants"),
    ],
)
def test_the_servers_words_reach_who_submitted_it(
    task, alice, version, client, behaviours, key, words
):
    with chat_server(behaviours) as server:
        server.key = key
        submission = worked(hand_in(task, alice, server, secret=SECRET))
    assert submission.state == Submission.State.FAILED
    said = submission.error + submission.log
    assert words in submission.error
    assert not any(part in said for part in (SECRET[:8], SECRET[-8:]))
    client.force_login(alice)
    assert words in client.get(url_of(submission)).text
