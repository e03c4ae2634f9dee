"""The name by which sessions know who signs in; both releases read it while a site is upgraded."""

from core.accounts import backends


class Backend(backends.Backend):
    """That of `core`, under the name that it had before."""
