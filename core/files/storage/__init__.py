"""Where bytes lie: the free disk, stored files, a bucket in the place of a folder. Any room may."""
