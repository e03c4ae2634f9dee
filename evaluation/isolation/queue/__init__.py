"""The leases of jobs, their subprocesses and cleanup. Packages that run jobs import this one."""
