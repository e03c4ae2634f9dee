"""What each role may do, as docs/states-roles-limits.md shows it."""

from pathlib import Path

from tasks.roles import (
    ADMINISTRATOR,
    BLIND_OWNER,
    IDLE_READER,
    PERSON,
    TABLE,
    VISITOR,
    May,
    allowed,
    allowed_to_participant,
    roles_that,
)

TABLES = Path(__file__).parents[3] / "docs/states-roles-limits.md"


def row_of(who):
    """The page's line for a role: what it may do always, and what only in a public task."""
    private, public = (allowed(who, is_visible=is_visible) for is_visible in (False, True))
    assert public >= private
    cells = ["yes" if may in private else "public" if may in public else "" for may in May]
    return f"| {who} | {' | '.join(cells)} |"


def test_the_table_of_the_docs():
    rows = "\n".join(row_of(who) for who in TABLE)
    heading = f"| role | {' | '.join(May)} |"
    assert f"{heading}\n{'|---' * (len(May) + 1)}|\n{rows}\n\n" in TABLES.read_text()


def test_who_reads_labels_never_judges():
    for who in TABLE:
        for is_visible in (False, True):
            may = allowed(who, is_visible=is_visible)
            assert not {May.READ, May.JUDGE} <= may, who


def test_a_blind_owner_keeps_all_but_what_tells_labels():
    owner = allowed("owner", is_visible=False)
    blind = allowed(BLIND_OWNER, is_visible=False)
    assert blind == owner - {May.READ, May.REVIEW} | {May.JUDGE}


def test_a_reading_role_that_does_not_count_lets_nobody_judge():
    assert allowed(IDLE_READER, is_visible=True) == allowed(PERSON, is_visible=True) - {May.JUDGE}
    assert allowed(IDLE_READER, is_visible=False) == frozenset()


def test_the_roles_of_members():
    assert roles_that(May.OWN) == {"owner"}
    assert roles_that(May.READ) == {"owner", "editor", "reviewer", "viewer"}
    assert roles_that(May.JUDGE) == {"annotator", "judge"}
    assert roles_that(May.SEE) == TABLE.keys() - {ADMINISTRATOR, BLIND_OWNER, PERSON, VISITOR}


def test_people_of_panels_take_part_and_no_more():
    assert allowed_to_participant(None) == frozenset()
    assert allowed_to_participant(PERSON) == {May.SEE, May.TRY, May.WRITE, May.JUDGE}
    assert allowed_to_participant("judge") == {May.SEE, May.TRY, May.JUDGE}
    assert not {May.READ, May.TAKE, May.OWN, May.SUBMIT} & allowed_to_participant("owner")
