"""The kinds of adversaries. Each module here, and each plug-in, adds kinds. Pure: no database."""

from core.plugins import load_plugins
from core.registry import import_modules
from dynabench.adversaries.kinds.base import KINDS, AdversaryKind

__all__ = ["KINDS", "AdversaryKind"]

import_modules(__path__, __name__)
load_plugins("dynabench.adversaries", AdversaryKind)  # importing a class registers it
