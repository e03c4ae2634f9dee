"""Claims of a provider, as real ones tell them."""

import pytest

from core.accounts.claims import (
    WrongClaims,
    are_groups_elsewhere,
    check_party,
    find_address,
    find_authentication_time,
    find_groups,
    find_subject,
)


def test_a_subject_is_one_text_in_all_sources():
    assert find_subject({"sub": "u"}, {}) == find_subject({}, {"sub": "u"}) == "u"
    assert find_subject({"sub": "x" * 255}) == "x" * 255
    for wrong in (
        [{}, {}], [{"sub": None}], [{"sub": ""}], [{"sub": 5}], [{"sub": "x" * 256}],
        [{"sub": "a\n"}], [{"sub": "u"}, {"sub": "v"}], [{"sub": "u"}, {"iss": "x"}],
    ):  # fmt: skip
        with pytest.raises(WrongClaims):
            find_subject(*wrong)


def test_a_token_is_of_this_client():
    check_party({}, "site")
    check_party({"azp": "site"}, "site")
    with pytest.raises(WrongClaims):
        check_party({"azp": "other"}, "site")


def test_an_address_is_confirmed_by_true_alone():
    one = {"email": "a@x.org"}
    for claim, is_confirmed in ((True, True), ("true", True), ("false", False), (1, False)):
        told = one | {"email_verified": claim}
        assert find_address(told, {}) == find_address({}, told) == ("a@x.org", is_confirmed)
        assert find_address(one, told) == ("a@x.org", is_confirmed)
    assert find_address(one | {"email_verified": True}, one | {"email_verified": False})[1] is False
    assert find_address(one, {"email": "b@x.org", "email_verified": True}) == ("a@x.org", False)
    assert find_address({"email": 5, "email_verified": True}, {}) == ("", False)
    assert find_address({"email": "", "email_verified": True}, one) == ("a@x.org", False)


def test_groups_are_known_or_not():
    def told(*values):
        return find_groups([{"groups": value} for value in values], "groups")

    assert told("a") == told(["a"]) == told(None, ["a"]) == {"a"}
    assert told(7) == told([7, "7"]) == {"7"}
    assert told([]) == set()
    assert told(["a", {"b": 1}, None, True, "", "c\0"]) == {"a"}
    for unknown in ("", None, {}, True, [None], [[]], [""], 1.5):
        assert told(unknown) is None, unknown
    assert find_groups([{}], "groups") is None


def test_groups_may_be_elsewhere():
    assert are_groups_elsewhere([{}, {"hasgroups": True}], "groups")
    assert are_groups_elsewhere([{"_claim_names": {"groups": "src1"}}], "groups")
    for no in ({"hasgroups": "x"}, {"_claim_names": {"roles": "s"}}, {"_claim_names": "groups"}):
        assert not are_groups_elsewhere([no], "groups")


def test_when_somebody_showed_who_they_are():
    assert find_authentication_time({"auth_time": 5}) == 5
    assert [find_authentication_time({"auth_time": odd}) for odd in ("5", None, True)] == [None] * 3
    assert find_authentication_time({}) is None
