"""Crowds for simulations: a few people write most examples, and one's examples are alike."""

import numpy as np

AUTHORS = (3, 5, 10, 30, 60)
ALIKE = (0.05, 0.2)
"""Correlation within authors."""


def sizes(draw: np.random.Generator, authors: int) -> np.ndarray:
    """Examples of each author: a few people write most of them."""
    return np.clip(np.ceil(draw.lognormal(1.6, 1.0, authors)), 2, 200).astype(int)


def shares(draw: np.random.Generator, authors: int, share: float, alike: float) -> np.ndarray:
    """Each author's own share, beta distributed with the correlation."""
    return draw.beta(share * (1 - alike) / alike, (1 - share) * (1 - alike) / alike, authors)
