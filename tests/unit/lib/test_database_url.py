"""The database's address: what Django is told, and what is refused."""

import pytest

from core.env import EnvError, parse_database_url


def test_sqlite_is_a_file():
    told = parse_database_url("sqlite:////srv/site.sqlite3", has_prepared_statements=True)
    assert (told["ENGINE"], told["NAME"]) == ("django.db.backends.sqlite3", "/srv/site.sqlite3")
    assert "prepare_threshold" not in told["OPTIONS"]


def test_postgres_with_all_its_parts():
    told = parse_database_url("postgres://ann:p%40ss@db.example:5433/site?sslmode=require")
    assert (told["USER"], told["PASSWORD"], told["NAME"]) == ("ann", "p@ss", "site")
    assert (told["HOST"], told["PORT"]) == ("db.example", "5433")
    assert told["OPTIONS"]["sslmode"] == "require"
    assert {"options": "-c lock_timeout=3000", "connect_timeout": "5"}.items() <= told[
        "OPTIONS"
    ].items()


def test_a_socket_is_named_after_the_question_mark():
    told = parse_database_url("postgres:///site?host=/run/postgresql")
    assert (told["HOST"], told["NAME"]) == ("/run/postgresql", "site")
    assert "host" not in told["OPTIONS"]


def test_plans_are_kept_only_where_it_is_asked_for():
    options = parse_database_url("postgres://ann@db/site", has_prepared_statements=True)["OPTIONS"]
    assert (options["server_side_binding"], options["prepare_threshold"]) == (True, 5)


@pytest.mark.parametrize(
    "url", ["", "site.sqlite3", "sqlite://", "mysql://db/site", "postgres://db"]
)
def test_another_form_is_refused(url):
    with pytest.raises(EnvError, match="DATABASE_URL"):
        parse_database_url(url)


def test_behind_a_pooler_nothing_is_left_on_a_connection():
    told = parse_database_url(
        "postgres://ann@db/site", has_prepared_statements=True, is_pooled=True
    )
    assert told["DISABLE_SERVER_SIDE_CURSORS"]
    assert told["OPTIONS"].keys() == {"connect_timeout"}
