"""The old path of the sign-in backend.

Sessions store this path. During an upgrade, the old and the new release both read it.
"""

from core.accounts import backends


class Backend(backends.Backend):
    """The sign-in backend of `core`, under the path that old sessions store."""
