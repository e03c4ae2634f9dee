"""The ways into a campaign, one class each. A new class in a file here is a new way.

`dynabench.campaigns.ways.registry` says what a class must define (docs/extending.md).
"""

from core.registry import import_modules

import_modules(__path__, __name__)
