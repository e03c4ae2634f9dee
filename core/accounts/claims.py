"""What an OpenID Connect provider's claims say: who comes, by which address, in which groups.

Pure: `userinfo` and `id_token` are dicts as they came from JSON, and either may be empty. Providers
differ from the specification, and what they get wrong must never give anybody more.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Claims = Mapping[str, Any]
LONGEST_SUBJECT = 255
"""Letters of `sub` (OpenID Connect Core, section 2)."""


class WrongClaims(ValueError):
    """The claims identify nobody."""


def subject_of(*sources: Claims) -> str:
    """The provider's id of the person. Raises WrongClaims.

    All sources name the same one: userinfo of somebody else must not be used (Core, 5.3.2).
    """
    told = [source.get("sub") for source in sources if source]
    if not told:
        raise WrongClaims("no claims came")
    subject = told[0]
    if not isinstance(subject, str) or not 1 <= len(subject) <= LONGEST_SUBJECT:
        raise WrongClaims(f"sub is not a text of 1 to {LONGEST_SUBJECT} characters")
    if not subject.isprintable():
        raise WrongClaims("sub holds control characters")
    if any(other != subject for other in told):
        raise WrongClaims("sub of userinfo is not that of the id token")
    return subject


def check_party(id_token: Claims, client: str) -> None:
    """Refuse a token that was issued to another client. Raises WrongClaims.

    That `aud`, a text or a list, names the client is checked where the token is decoded.
    """
    if id_token.get("azp", client) != client:
        raise WrongClaims("azp of the id token names another client")


def address_of(userinfo: Claims, id_token: Claims) -> tuple[str, bool]:
    """The person's address, or "", and whether the provider confirms it.

    ADFS tells it in the id token only. Each source that tells this address is asked for
    `email_verified`: one must confirm it and none may deny it.
    """
    sources = (userinfo, id_token)
    told = [source["email"] for source in sources if isinstance(source.get("email"), str)]
    address: str = next(filter(None, told), "")
    about = [
        source["email_verified"]
        for source in sources
        if "email_verified" in source and source.get("email") == address
    ]
    return address, bool(address and about) and all(map(_is_true, about))


def _is_true(claim: Any) -> bool:
    """Amazon Cognito tells "true" and "false" as texts."""
    return claim is True or claim == "true"


def groups_of(sources: Sequence[Claims], claim: str) -> set[str] | None:
    """The groups that the first source with the claim tells; None where they are not known.

    A text is one group, as ADFS tells a single one. What is no text or number names no group.
    """
    for source in sources:
        told = source.get(claim)
        if isinstance(told, (str, int)):
            told = [told]
        if not isinstance(told, list):
            continue
        named = {str(one) for one in told if _is_name(one)}
        return named if named or not told else None
    return None


def _is_name(group: Any) -> bool:
    """Whether it is a name or number of a group that a database can hold."""
    is_scalar = isinstance(group, (str, int)) and not isinstance(group, bool)
    return is_scalar and str(group) != "" and str(group).isprintable()


def authenticated_at(id_token: Claims) -> int | None:
    """When the person showed the provider who they are; None where it does not tell."""
    told = id_token.get("auth_time")
    return told if isinstance(told, int) and not isinstance(told, bool) else None


def are_elsewhere(sources: Sequence[Claims], claim: str) -> bool:
    """Whether the groups are only pointed at, as Microsoft Entra does above 200."""
    return any(
        source.get("hasgroups") is True
        or (isinstance(names := source.get("_claim_names"), Mapping) and claim in names)
        for source in sources
    )
