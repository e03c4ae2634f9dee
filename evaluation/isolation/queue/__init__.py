"""The leases of jobs, their subprocesses and cleanup. Folders that do a job import it."""
