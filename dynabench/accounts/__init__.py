"""Where sessions and the release before 0.4 look for what moved to `core.accounts`."""
