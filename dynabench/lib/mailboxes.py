"""E-mail addresses as one mailbox, however they are written: a pure rule."""

import unicodedata


def normal_address(address: str) -> str:
    """Return the form in which an address is counted.

    Case, Unicode's compatible forms, the spelling of the domain (IDNA) and a tag after "+" make no
    difference. Never raises: what is no address is returned folded.

    >>> normal_address("Ada+two@EXAMPLE.com.")
    'ada@example.com'
    """
    folded = unicodedata.normalize("NFKC", address.strip()).casefold()
    local, _, domain = folded.rpartition("@")
    mailbox = local.partition("+")[0] or local
    return f"{mailbox}@{_ascii_domain(domain.rstrip('.'))}"


def _ascii_domain(domain: str) -> str:
    try:
        return domain.encode("idna").decode()
    except UnicodeError:  # no domain at all, or one that IDNA does not know
        return domain
