"""Claims of a provider, as real ones tell them."""

import pytest

from core.accounts.claims import (
    WrongClaims,
    address_of,
    are_elsewhere,
    authenticated_at,
    check_party,
    groups_of,
    subject_of,
)


def test_a_subject_is_one_text_in_all_sources():
    assert subject_of({"sub": "u"}, {}) == subject_of({}, {"sub": "u"}) == "u"
    assert subject_of({"sub": "x" * 255}) == "x" * 255
    for wrong in (
        [{}, {}], [{"sub": None}], [{"sub": ""}], [{"sub": 5}], [{"sub": "x" * 256}],
        [{"sub": "a\n"}], [{"sub": "u"}, {"sub": "v"}], [{"sub": "u"}, {"iss": "x"}],
    ):  # fmt: skip
        with pytest.raises(WrongClaims):
            subject_of(*wrong)


def test_a_token_is_of_this_client():
    check_party({}, "site")
    check_party({"azp": "site"}, "site")
    with pytest.raises(WrongClaims):
        check_party({"azp": "other"}, "site")


def test_an_address_is_confirmed_by_true_alone():
    one = {"email": "a@x.org"}
    for claim, is_confirmed in ((True, True), ("true", True), ("false", False), (1, False)):
        told = one | {"email_verified": claim}
        assert address_of(told, {}) == address_of({}, told) == ("a@x.org", is_confirmed)
        assert address_of(one, told) == ("a@x.org", is_confirmed)
    assert address_of(one | {"email_verified": True}, one | {"email_verified": False})[1] is False
    assert address_of(one, {"email": "b@x.org", "email_verified": True}) == ("a@x.org", False)
    assert address_of({"email": 5, "email_verified": True}, {}) == ("", False)
    assert address_of({"email": "", "email_verified": True}, one) == ("a@x.org", False)


def test_groups_are_known_or_not():
    def told(*values):
        return groups_of([{"groups": value} for value in values], "groups")

    assert told("a") == told(["a"]) == told(None, ["a"]) == {"a"}
    assert told(7) == told([7, "7"]) == {"7"}
    assert told([]) == set()
    assert told(["a", {"b": 1}, None, True, "", "c\0"]) == {"a"}
    for unknown in ("", None, {}, True, [None], [[]], [""], 1.5):
        assert told(unknown) is None, unknown
    assert groups_of([{}], "groups") is None


def test_groups_may_be_elsewhere():
    assert are_elsewhere([{}, {"hasgroups": True}], "groups")
    assert are_elsewhere([{"_claim_names": {"groups": "src1"}}], "groups")
    for no in ({"hasgroups": "x"}, {"_claim_names": {"roles": "s"}}, {"_claim_names": "groups"}):
        assert not are_elsewhere([no], "groups")


def test_when_somebody_showed_who_they_are():
    assert authenticated_at({"auth_time": 5}) == 5
    assert [authenticated_at({"auth_time": odd}) for odd in ("5", None, True)] == [None] * 3
    assert authenticated_at({}) is None
