"""Numbers of rounds and people: counted, defined, reported and cached. For pages and the API."""

from validation.rates.rates import compute_clustered_rate

__all__ = ["compute_clustered_rate"]
