"""A chat server that tells its tokens, and chat models handed in that are asked there."""

import pytest

from evaluation.runs.chat.settings import make_chat_settings
from evaluation.submissions.services import submit_model
from tests.support.chat_server import chat_server
from tests.support.made_sets import make_set
from tests.support.submissions import work_off

TOKENS = (1000, 10)
PRICES = {"price_in": 1.0, "price_out": 10.0}  # a call of TOKENS costs 0.0011
CALL = 0.0011


@pytest.fixture(autouse=True)
def _asks_this_machine(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.SUBMISSION_PRIVATE_HOSTS = ["127.0.0.1"]


@pytest.fixture
def version(task):
    return make_set(task, "open", may_leave=True)


@pytest.fixture
def server():
    with chat_server({"m": lambda messages: "neutral"}) as found:
        found.tokens = TOKENS
        yield found


def hand_in(task, owner, server, name="Chat", secret="", **told):
    chat = make_chat_settings(task.config, model=told.pop("model", "m"), **told)
    return submit_model(
        task=task, owner=owner, kind="chat", name=name, source=server.url, secret=secret, chat=chat
    )


def worked(submission):
    work_off()
    submission.refresh_from_db()
    return submission
