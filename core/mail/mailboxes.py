"""Normalise email addresses, so that all spellings of a mailbox are equal. Pure."""

import re
import unicodedata

import idna


def normalise_address(address: str) -> str:
    r"""Return the normal form of an address, by which people are counted.

    It is the same for addresses that differ only in case, in Unicode's compatibility forms, or in
    the spelling of the domain (IDNA). Quotes around the local part (RFC 5321, 4.1.2) and a tag
    after "+" are removed. Never raises: an invalid address is returned case-folded.

        >>> normalise_address(r'"Ad\a+two"@EXAMPLE.com.')
        'ada@example.com'
    """
    folded = unicodedata.normalize("NFKC", address.strip()).casefold()
    local_part, _, domain = folded.rpartition("@")
    local_part = _unquote(local_part)
    # Of "+a@…" nothing would be left, and all such addresses would count as one person.
    mailbox = local_part.partition("+")[0] or local_part
    return f"{mailbox}@{_encode_domain(domain.rstrip('.'))}"


def _unquote(local_part: str) -> str:
    """Return a local part without its quotes and escaping backslashes."""
    if len(local_part) < 2 or local_part[0] != '"' or local_part[-1] != '"':
        return local_part
    # Within quotes a backslash escapes any character.
    return re.sub(r"\\(.)", r"\1", local_part[1:-1])


def _encode_domain(domain: str) -> str:
    try:
        return idna.encode(domain, uts46=True).decode()
    except UnicodeError:  # no domain at all, or one that IDNA does not know (idna.IDNAError)
        return domain
