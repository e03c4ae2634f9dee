"""A benchmark that lives in a folder: read its files, plan what to change on a site, and do it."""
