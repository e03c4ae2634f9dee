"""What each role may do: docs/owners.md shows it, and nobody who reads the labels judges."""

from pathlib import Path

from tasks.roles import ADMINISTRATOR, PERSON, TABLE, VISITOR, May, allowed, roles_that

OWNERS = Path(__file__).parents[3] / "docs/owners.md"


def in_words(who, may):
    """yes, no or public: only where everybody sees the task."""
    hidden, public = (may in allowed(who, is_visible=is_visible) for is_visible in (False, True))
    assert public >= hidden
    return "yes" if hidden else "public" if public else "no"


def test_the_table_of_the_docs():
    rows = [["role", *May], *([who, *(in_words(who, may) for may in May)] for who in TABLE)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    assert "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) in OWNERS.read_text()


def test_who_reads_labels_never_judges():
    for who in TABLE:
        for is_visible in (False, True):
            may = allowed(who, is_visible=is_visible)
            assert not {May.READ, May.JUDGE} <= may, who


def test_the_roles_of_members():
    assert roles_that(May.OWN) == {"owner"}
    assert roles_that(May.READ) == {"owner", "editor", "reviewer", "viewer"}
    assert roles_that(May.JUDGE) == {"annotator", "judge"}
    assert roles_that(May.SEE) == TABLE.keys() - {ADMINISTRATOR, PERSON, VISITOR}
