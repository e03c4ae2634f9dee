"""The Python client of a Dynabench server: `from dynabench import DynabenchClient`.

Nothing in it imports Django, because the package is also the wheel `dynabench-client`.
"""

# ruff: noqa: E402 - the check comes before imports that may fail

from dynabench.client.freshness import check_generated_modules

# Before all else: without these modules no other can be imported.
check_generated_modules()

from dynabench.client.client import AsyncDynabenchClient, DynabenchClient
from dynabench.client.dataframes import as_dataset, as_pandas
from dynabench.client.errors import (
    AuthenticationError,
    Damaged,
    DynabenchError,
    EvaluationFailed,
    Invalid,
    NotFound,
    PermissionDenied,
    QuotaReached,
    RateLimited,
    Refused,
    ServerError,
    TimedOut,
    Unreachable,
)

__all__ = [
    "AsyncDynabenchClient",
    "AuthenticationError",
    "Damaged",
    "DynabenchClient",
    "DynabenchError",
    "EvaluationFailed",
    "Invalid",
    "NotFound",
    "PermissionDenied",
    "QuotaReached",
    "RateLimited",
    "Refused",
    "ServerError",
    "TimedOut",
    "Unreachable",
    "as_dataset",
    "as_pandas",
]
