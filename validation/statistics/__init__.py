"""Numbers of rounds and people: counted, defined, reported and cached. For pages and the API."""

from validation.rates.rates import clustered_rate

__all__ = ["clustered_rate"]
