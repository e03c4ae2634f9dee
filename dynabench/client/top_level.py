"""A Dynabench server for programs: this file is the wheel's `dynabench/__init__.py`."""

from dynabench.client import AsyncDynabenchClient, DynabenchClient

__all__ = ["AsyncDynabenchClient", "DynabenchClient"]
