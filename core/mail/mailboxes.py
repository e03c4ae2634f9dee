"""E-mail addresses as one mailbox, however they are written: a pure rule."""

import re
import unicodedata

import idna


def normal_address(address: str) -> str:
    r"""Return the normal form of an address, by which people are counted.

    Case, Unicode's compatible forms, the spelling of the domain (IDNA), quotes around the local
    part (RFC 5321, 4.1.2) and a tag after "+" make no difference. Never raises: an invalid address
    is returned case-folded.

    >>> normal_address('"Ad\a+two"@EXAMPLE.com.')
    'ada@example.com'
    """
    folded = unicodedata.normalize("NFKC", address.strip()).casefold()
    local, _, domain = folded.rpartition("@")
    local = _unquoted(local)
    # Of "+a@…" nothing would be left, and all such addresses would count as one person.
    mailbox = local.partition("+")[0] or local
    return f"{mailbox}@{_ascii_domain(domain.rstrip('.'))}"


def _unquoted(local_part: str) -> str:
    """Return a local part without quotes and the backslashes that escape characters."""
    if len(local_part) < 2 or local_part[0] != '"' or local_part[-1] != '"':
        return local_part
    return re.sub(r"\\(.)", r"\1", local_part[1:-1])


def _ascii_domain(domain: str) -> str:
    try:
        return idna.encode(domain, uts46=True).decode()
    except UnicodeError:  # no domain at all, or one that IDNA does not know (idna.IDNAError)
        return domain
