"""What each role may do, as docs/states-roles-limits.md shows it."""

from pathlib import Path

from tasks.role_permissions import (
    ADMINISTRATOR,
    BLIND_OWNER,
    IDLE_READER,
    PERMISSIONS_BY_ROLE,
    PERSON,
    VISITOR,
    Permission,
    find_roles_with_permission,
    get_participant_permissions,
    get_permissions,
)

TABLES = Path(__file__).parents[3] / "docs/states-roles-limits.md"


def row_of(who):
    """The page's line for a role: what it may do always, and what only in a public task."""
    private, public = (get_permissions(who, is_visible=is_visible) for is_visible in (False, True))
    assert public >= private
    cells = ["yes" if may in private else "public" if may in public else "" for may in Permission]
    return f"| {who} | {' | '.join(cells)} |"


def test_the_table_of_the_docs():
    rows = "\n".join(row_of(who) for who in PERMISSIONS_BY_ROLE)
    heading = f"| role | {' | '.join(Permission)} |"
    assert f"{heading}\n{'|---' * (len(Permission) + 1)}|\n{rows}\n\n" in TABLES.read_text()


def test_who_reads_labels_never_judges():
    for who in PERMISSIONS_BY_ROLE:
        for is_visible in (False, True):
            may = get_permissions(who, is_visible=is_visible)
            assert not {Permission.READ, Permission.JUDGE} <= may, who


def test_a_blind_owner_keeps_all_but_what_tells_labels():
    owner = get_permissions("owner", is_visible=False)
    blind = get_permissions(BLIND_OWNER, is_visible=False)
    assert blind == owner - {Permission.READ, Permission.REVIEW} | {Permission.JUDGE}


def test_a_reading_role_that_does_not_count_lets_nobody_judge():
    assert get_permissions(IDLE_READER, is_visible=True) == get_permissions(
        PERSON, is_visible=True
    ) - {Permission.JUDGE}
    assert get_permissions(IDLE_READER, is_visible=False) == frozenset()


def test_the_roles_of_members():
    assert find_roles_with_permission(Permission.OWN) == {"owner"}
    assert find_roles_with_permission(Permission.READ) == {"owner", "editor", "reviewer", "viewer"}
    assert find_roles_with_permission(Permission.JUDGE) == {"annotator", "judge"}
    assert find_roles_with_permission(Permission.SEE) == PERMISSIONS_BY_ROLE.keys() - {
        ADMINISTRATOR,
        BLIND_OWNER,
        PERSON,
        VISITOR,
    }


def test_people_of_panels_take_part_and_no_more():
    assert get_participant_permissions(None) == frozenset()
    assert get_participant_permissions(PERSON) == {
        Permission.SEE,
        Permission.TRY,
        Permission.WRITE,
        Permission.JUDGE,
    }
    assert get_participant_permissions("judge") == {
        Permission.SEE,
        Permission.TRY,
        Permission.JUDGE,
    }
    assert not {
        Permission.READ,
        Permission.TAKE,
        Permission.OWN,
        Permission.SUBMIT,
    } & get_participant_permissions("owner")
