"""A part that others run, for which as many threads wait as may."""

from contextlib import contextmanager

from core import outside
from core.outside import ThreadSlots, limit_waiting_threads


@contextmanager
def held(monkeypatch, module):
    """The only place of the part that a module asks is taken, as by a call that hangs."""
    with monkeypatch.context() as patch:
        patch.setattr(outside, "PATIENCE_SECONDS", 0.0)
        limit_waiting_threads(1)
        try:
            patch.setattr(module, "_slots", places := ThreadSlots())
            with places.take_slot():
                yield
        finally:
            limit_waiting_threads(None)
