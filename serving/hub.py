"""Explain failed downloads from a hub: an outage of the hub, or a mistake that people can fix."""

from .errors import MisconfiguredError, ServingError, TryLaterError

REQUEST_SECONDS = 20.0
"""How long a hub may send nothing before it counts as unavailable."""
RETRY_STATUSES = (408, 425, 429)
"""HTTP client errors after which the same request may succeed later."""


class HubUnavailableError(TryLaterError):
    """Raised if the hub does not respond, fails or asks to retry later. The model may be fine."""

    code = "hub_away"
    retry_after = 60


def set_hub_timeouts() -> None:
    """Set timeouts for the hub's client, which by default waits forever."""
    from huggingface_hub import get_session

    get_session().timeout = REQUEST_SECONDS


def explain_hub_failure(name: str, source: str, error: Exception) -> ServingError | None:
    """Return the error for a failed download by the hub's client; None if the hub is not the cause.

    MisconfiguredError explains a permanent refusal and how to fix it. HubUnavailableError means
    that the same download may succeed later.
    """
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    # Some errors of the client wrap the one that says what happened.
    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # of the request; this one only says that there is no copy here
    if isinstance(error, OfflineModeIsEnabled):
        problem = "this site asks no hub (HF_HUB_OFFLINE). Submit its files as a folder"
    elif isinstance(error, GatedRepoError):
        problem = (
            "the hub gives it only to people who accepted its terms. Submit its files as a folder, "
            "if these terms allow it"
        )
    elif isinstance(error, RepositoryNotFoundError):
        problem = "the hub has no public model with this ID. Check the ID, or make the model public"
    elif isinstance(error, RevisionNotFoundError):
        problem = "the hub doesn't have this commit. Copy the commit from the model's history"
    elif isinstance(error, RemoteEntryNotFoundError):
        problem = f"the hub lacks a file of it: {error}"
    elif isinstance(error, HFValidationError):
        problem = str(error)
    else:
        return _explain_status(name, source, error)
    return MisconfiguredError(f"{name}: cannot fetch {source}: {problem}.")


def _explain_status(name: str, source: str, error: Exception) -> ServingError | None:
    import httpx2  # the hub's client raises its errors

    # Errors without an answer of the hub have no status.
    status = getattr(getattr(error, "response", None), "status_code", 0)
    if 400 <= status < 500 and status not in RETRY_STATUSES:
        return MisconfiguredError(f"{name}: cannot fetch {source}: the hub refuses it: {error}")
    if status:
        return HubUnavailableError(
            f"The hub can't provide {source} right now: it answers {status}."
        )
    if isinstance(error, (httpx2.HTTPError, ConnectionError, TimeoutError, FileNotFoundError)):
        reason = type(error).__name__
        return HubUnavailableError(
            f"The hub does not answer ({reason}), so {source} cannot be fetched now."
        )
    return None
