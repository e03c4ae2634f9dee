"""Is the installation sound? What the doctor and `/readyz/` look at."""
