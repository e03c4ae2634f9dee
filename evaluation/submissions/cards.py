"""Model cards: the owners' descriptions of their models."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class ModelCard:
    """The owner's description of a model."""

    description: str = ""
    languages: str = ""
    trained_on: str = ""
    trained_until: date | None = None
    license: str = ""
    paper_url: str = ""
    parameters: int | None = None


NO_CARD = ModelCard()
"""The card of a model whose owner has described nothing."""
