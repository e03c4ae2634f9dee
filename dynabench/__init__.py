"""The Django project. For users of the API, `from dynabench import DynabenchClient` works, too.

Django imports this module first, so the client and its dependencies are only imported on
access. In the wheel `dynabench-client`, `dynabench/client/top_level.py` takes its place.
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
