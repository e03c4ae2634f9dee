"""Models that people submit: the form, the quota, the check, the pages."""
