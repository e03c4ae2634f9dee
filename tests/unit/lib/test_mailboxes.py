"""One mailbox is one address, however it is written."""

import pytest

from core.mail.mailboxes import normalise_address


@pytest.mark.parametrize(
    "written",
    [
        "ada@example.com",
        " Ada@EXAMPLE.com ",
        "ada+second@example.com",
        "ada+a+b@example.com.",
        "\uff21da@example.com",  # a full-width A
        '"ada"@example.com',
        '"ada+1"@example.com',
        r'"\a\d\a"@example.com',
    ],
)
def test_one_mailbox_is_one_address(written):
    assert normalise_address(written) == "ada@example.com"


def test_a_domain_is_the_same_in_letters_and_in_ascii():
    same = {"a@b\u00fccher.example", "A@B\u00dcCHER.example", "a@xn--bcher-kva.example"}
    assert {*map(normalise_address, same)} == {"a@xn--bcher-kva.example"}


@pytest.mark.parametrize(
    "written",
    ["", "@", "nobody", "+@x.example", "a@\u202etset.kta", "a@x..y", '"', '""@x', '"\\"@x'],
)
def test_what_is_no_address_is_folded_and_never_raises(written):
    assert normalise_address(written)


def test_different_mailboxes_differ():
    written = ["a@x.example", "b@x.example", "a@y.example", "+a@x.example", "a.b@x.example"]
    assert len({*map(normalise_address, written)}) == len(written)
