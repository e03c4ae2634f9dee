"""Is the installation sound? For the doctor, `/readyz/` and the files of releases."""
