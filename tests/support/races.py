"""How often a race is run: more often finds more, and takes longer."""

import os

USUAL = 5


def races(many: int) -> range:
    """Five times, or `many` times where RACES=many asks for it."""
    return range(many if os.environ.get("RACES") == "many" else min(many, USUAL))
