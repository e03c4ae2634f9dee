"""The Django project; and `from dynabench import DynabenchClient` for those who use its API.

Django imports it first: so the client, and what it needs, comes only to those who ask for it. The
wheel `dynabench-client` has `dynabench/client/top_level.py` in its place.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynabench.client import AsyncDynabenchClient as AsyncDynabenchClient
    from dynabench.client import DynabenchClient as DynabenchClient

__all__ = ["AsyncDynabenchClient", "DynabenchClient"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dynabench import client

    return getattr(client, name)
