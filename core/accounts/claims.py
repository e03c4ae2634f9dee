"""Read an OpenID Connect provider's claims: the person's id, address and groups.

Pure: `userinfo` and `id_token` are decoded JSON objects, and either may be empty. Providers deviate
from the specification; their mistakes must never give anybody more access.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Claims = Mapping[str, Any]
MAX_SUBJECT_CHARS = 255
"""The maximum length of `sub` in characters (OpenID Connect Core, section 2)."""


class WrongClaims(ValueError):
    """Raised for claims that do not identify a person."""


def find_subject(*sources: Claims) -> str:
    """Return the provider's id of the person. Raises WrongClaims.

    All sources must name the same person: userinfo of another person must not be used (OpenID
    Connect Core, 5.3.2).
    """
    subjects = [source.get("sub") for source in sources if source]
    if not subjects:
        raise WrongClaims("no claims came")
    subject = subjects[0]
    if not isinstance(subject, str) or not 1 <= len(subject) <= MAX_SUBJECT_CHARS:
        raise WrongClaims(f"sub is not a text of 1 to {MAX_SUBJECT_CHARS} characters")
    if not subject.isprintable():
        raise WrongClaims("sub contains control characters")
    if any(other != subject for other in subjects):
        raise WrongClaims("sub of userinfo is not that of the id token")
    return subject


def check_party(id_token: Claims, client: str) -> None:
    """Raise WrongClaims for a token that was issued to another client.

    Decoding has already checked that `aud`, a text or a list, includes the client.
    """
    if id_token.get("azp", client) != client:
        raise WrongClaims("azp of the id token names another client")


def find_address(userinfo: Claims, id_token: Claims) -> tuple[str, bool]:
    """Return the person's address, or "", and whether the provider confirms it.

    ADFS sends the address only in the id token. Of the sources that have this address, one must
    confirm it by `email_verified` and none may deny it.
    """
    sources = (userinfo, id_token)
    addresses = [source["email"] for source in sources if isinstance(source.get("email"), str)]
    address: str = next(filter(None, addresses), "")
    address_claims = [
        source["email_verified"]
        for source in sources
        if "email_verified" in source and source.get("email") == address
    ]
    return address, bool(address and address_claims) and all(map(_is_true, address_claims))


def _is_true(claim: Any) -> bool:
    """Return whether a claim is true. Amazon Cognito sends "true" and "false" as texts."""
    return claim is True or claim == "true"


def find_groups(sources: Sequence[Claims], claim: str) -> set[str] | None:
    """Return the groups of the first source that has the claim; None if they are unknown.

    A text or a number is a single group, as ADFS sends it. Other values are ignored. The groups are
    unknown if no source has the claim, or if it has values but no usable name.
    """
    for source in sources:
        groups = source.get(claim)
        # True and False come in here, too; `_is_name` leaves them out.
        if isinstance(groups, (str, int)):
            groups = [groups]
        if not isinstance(groups, list):
            continue
        names = {str(group) for group in groups if _is_name(group)}
        # An empty list says that there are no groups. One without any name says nothing.
        return names if names or not groups else None
    return None


def _is_name(group: Any) -> bool:
    """Return whether a value is a group's name or number that a database can store."""
    is_scalar = isinstance(group, (str, int)) and not isinstance(group, bool)
    return is_scalar and str(group) != "" and str(group).isprintable()


def find_authentication_time(id_token: Claims) -> int | None:
    """Return when the person authenticated at the provider, in seconds since 1970.

    None if the provider does not say.
    """
    auth_time = id_token.get("auth_time")
    return auth_time if isinstance(auth_time, int) and not isinstance(auth_time, bool) else None


def are_groups_elsewhere(sources: Sequence[Claims], claim: str) -> bool:
    """Return whether the claim only links to the groups.

    Microsoft Entra sends such a claim for a person in more than 200 groups.
    """
    return any(
        source.get("hasgroups") is True
        or (isinstance(names := source.get("_claim_names"), Mapping) and claim in names)
        for source in sources
    )
