"""`dynabench login`, `logout` and `whoami`."""

import io
import json
import stat
import sys
from pathlib import Path

from dynabench.client.commands import main
from dynabench.client.credentials import find_api_key, find_keys_file, store_key
from tests.unit.client.commands.conftest import refusal

KEY = "dyna_verysecret"


def test_a_key_that_the_server_takes_is_kept_for_its_owner_alone(server, capsys):
    assert main(["login", "--key", KEY]) == 0
    assert stat.S_IMODE(find_keys_file().stat().st_mode) == 0o600
    assert main(["whoami"]) == 0
    assert server.asked[-1].headers["Authorization"] == f"Bearer {KEY}"
    out, err = capsys.readouterr()
    assert "at http://dynabench.test as w-7f3k2m." in out
    assert "read, submit, expires on 2099-01-02" in out
    assert KEY not in out + err


def test_a_key_may_come_from_standard_input(server, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{KEY}\n"))
    assert main(["login"]) == 0
    assert server.asked[-1].headers["Authorization"] == f"Bearer {KEY}"


def test_no_key_is_no_login(failing, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    code, said = failing("login")
    assert code == 2
    assert "http://dynabench.test/account/tokens/" in said


def test_a_key_that_the_server_refuses_is_not_kept(server, failing):
    server.answers["GET /me/"] = refusal(401, "This token is unknown or was revoked.")
    code, said = failing("login", "--key", KEY)
    assert code == 3
    assert said.endswith("dynabench login")
    assert not find_keys_file().exists()


def test_logout_forgets_the_key(server, capsys):
    main(["login", "--key", KEY])
    assert main(["logout"]) == 0
    assert KEY not in find_keys_file().read_text()
    assert main(["logout", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.partition("page.\n")[2])["deleted"] is False


def test_a_variable_that_goes_before_the_login_is_named(server, capsys, monkeypatch):
    monkeypatch.setenv("DYNABENCH_API_KEY", "dyna_old")
    assert main(["login", "--key", KEY]) == 0
    assert "DYNABENCH_API_KEY" in capsys.readouterr().err


def test_two_logins_at_once_share_no_file(server, monkeypatch):
    names, replace = [], Path.replace

    def interrupted(new, target):
        names.append(new)
        if len(names) == 1:
            store_key("http://other.test", "theirs")
        return replace(new, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    store_key("http://dynabench.test", KEY)
    assert len(set(names)) == 2
    assert find_api_key("http://dynabench.test") == KEY
    assert list(find_keys_file().parent.iterdir()) == [find_keys_file()]
