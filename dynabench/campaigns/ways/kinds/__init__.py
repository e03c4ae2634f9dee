"""The ways into a campaign, a class each: a new class in a file here is a new way.

`dynabench.campaigns.ways.registry` says what each must bring (docs/extending.md).
"""

from core.registry import import_modules

import_modules(__path__, __name__)
