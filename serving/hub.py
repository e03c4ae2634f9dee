"""What it means that a hub gave no files: its own failure, or something that a person can mend."""

from .errors import MisconfiguredError, ServingError, TryLaterError

SECONDS = 20.0
"""How long a hub may send nothing before it counts as away."""
LATER = (408, 425, 429)
"""Statuses of a client's errors that say nothing against the request."""


class HubAwayError(TryLaterError):
    """Raised if the hub does not answer, fails or asks to retry later. The model may be fine."""

    code = "hub_away"
    retry_after = 60


def bound_waiting() -> None:
    """Set timeouts for the hub's client, which by default waits forever."""
    from huggingface_hub import get_session

    get_session().timeout = SECONDS


def hub_failure(name: str, source: str, error: Exception) -> ServingError | None:
    """Return the error for a failed fetch by the hub's client; None if the hub is not the cause.

    MisconfiguredError gives advice about a definite refusal. HubAwayError: the same fetch may
    succeed.
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
        problem = (
            "the hub has no such model that everybody may read. Check the id, or make it public"
        )
    elif isinstance(error, RevisionNotFoundError):
        problem = "the hub has no such commit of it. Copy the commit from the model's history"
    elif isinstance(error, RemoteEntryNotFoundError):
        problem = f"the hub lacks a file of it: {error}"
    elif isinstance(error, HFValidationError):
        problem = str(error)
    else:
        return _by_status(name, source, error)
    return MisconfiguredError(f"{name}: cannot fetch {source}: {problem}.")


def _by_status(name: str, source: str, error: Exception) -> ServingError | None:
    import httpx2  # the hub's client raises its errors

    # Errors without an answer of the hub have no status.
    status = getattr(getattr(error, "response", None), "status_code", 0)
    if 400 <= status < 500 and status not in LATER:
        return MisconfiguredError(f"{name}: cannot fetch {source}: the hub refuses it: {error}")
    if status:
        return HubAwayError(f"The hub does not give {source} at present: it answers {status}.")
    if isinstance(error, (httpx2.HTTPError, ConnectionError, TimeoutError, FileNotFoundError)):
        why = type(error).__name__
        return HubAwayError(f"The hub does not answer ({why}), so {source} cannot be fetched now.")
    return None
