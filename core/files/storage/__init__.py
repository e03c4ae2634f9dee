"""Storage of bytes: free disk space, stored files, and buckets instead of folders."""
