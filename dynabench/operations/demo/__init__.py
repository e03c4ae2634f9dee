"""A simulated community that plays whole rounds through the services: `manage.py demo`."""
