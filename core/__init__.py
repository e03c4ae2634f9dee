"""The ground that every room stands on: it imports none of them."""
