"""The Python client of a Dynabench server. In the wheel, this file is `dynabench/__init__.py`."""

from dynabench.client import AsyncDynabenchClient, DynabenchClient

__all__ = ["AsyncDynabenchClient", "DynabenchClient"]
