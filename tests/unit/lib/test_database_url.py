"""The database's address: what Django is told, and what is refused."""

import pytest

from core.env import EnvError, database


def test_sqlite_is_a_file():
    told = database("sqlite:////srv/site.sqlite3", prepared=True)
    assert (told["ENGINE"], told["NAME"]) == ("django.db.backends.sqlite3", "/srv/site.sqlite3")
    assert "prepare_threshold" not in told["OPTIONS"]


def test_postgres_with_all_its_parts():
    told = database("postgres://ann:p%40ss@db.example:5433/site?sslmode=require")
    assert (told["USER"], told["PASSWORD"], told["NAME"]) == ("ann", "p@ss", "site")
    assert (told["HOST"], told["PORT"]) == ("db.example", "5433")
    assert told["OPTIONS"]["sslmode"] == "require"
    assert {"options": "-c lock_timeout=3000", "connect_timeout": "5"}.items() <= told[
        "OPTIONS"
    ].items()


def test_a_socket_is_named_after_the_question_mark():
    told = database("postgres:///site?host=/run/postgresql")
    assert (told["HOST"], told["NAME"]) == ("/run/postgresql", "site")
    assert "host" not in told["OPTIONS"]


def test_plans_are_kept_only_where_it_is_asked_for():
    options = database("postgres://ann@db/site", prepared=True)["OPTIONS"]
    assert (options["server_side_binding"], options["prepare_threshold"]) == (True, 5)


@pytest.mark.parametrize(
    "url", ["", "site.sqlite3", "sqlite://", "mysql://db/site", "postgres://db"]
)
def test_another_form_is_refused(url):
    with pytest.raises(EnvError, match="DATABASE_URL"):
        database(url)


def test_behind_a_pooler_nothing_is_left_on_a_connection():
    told = database("postgres://ann@db/site", prepared=True, pooled=True)
    assert told["DISABLE_SERVER_SIDE_CURSORS"]
    assert told["OPTIONS"].keys() == {"connect_timeout"}
