"""`serve_model --registered` served at 8100 whatever MODEL_SERVER_URL said, or died untold."""

import socket

import pytest
from django.core.management import CommandError, call_command

from tasks.management.commands import serve_model


@pytest.fixture
def served(monkeypatch):
    """Where the server would listen."""
    at = []

    class Server:
        def __init__(self, make, *, host, port, keys):
            at.append((host, port))

        def run(self):
            pass

    monkeypatch.setattr(serve_model, "ModelServer", Server)
    return at


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def test_registered_models_are_served_where_the_site_asks(served, settings, port):
    settings.MODEL_SERVER_URL = f"http://127.0.0.1:{port}"
    call_command("serve_model", registered=True)
    assert served == [("127.0.0.1", port)]


def test_a_port_that_is_named_wins(served, settings, port):
    settings.MODEL_SERVER_URL = "http://127.0.0.1:1"
    call_command("serve_model", registered=True, port=port)
    assert served == [("127.0.0.1", port)]


def test_a_port_that_is_taken_is_named(served, settings):
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings.MODEL_SERVER_URL = f"http://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(CommandError, match=str(other.getsockname()[1])):
            call_command("serve_model", registered=True)
    assert not served


def test_a_host_that_is_not_ours_is_named(served):
    with pytest.raises(CommandError, match=r"192\.0\.2\.1"):
        call_command("serve_model", registered=True, host="192.0.2.1", port=9)
    assert not served
