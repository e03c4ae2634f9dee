"""What each role may do: docs/owners.md shows it, and nobody who reads the labels judges."""

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

OWNERS = Path(__file__).parents[3] / "docs/owners.md"


def in_words(who):
    """What somebody may do, and what only where everybody sees the task."""
    hidden, public = (allowed(who, is_visible=is_visible) for is_visible in (False, True))
    assert public >= hidden
    always, there = ([may for may in May if may in some] for some in (hidden, public - hidden))
    words = [", ".join(always), "where public " + ", ".join(there)]
    return "; ".join([*words[:1] * bool(always), *words[1:] * bool(there)])


def test_the_list_of_the_docs():
    lines = "\n".join(f"- {who}: {in_words(who)}" for who in TABLE)
    assert f"\n\n{lines}\n\n" in OWNERS.read_text()


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
