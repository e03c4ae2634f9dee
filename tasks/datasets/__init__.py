"""Published datasets: folders of the library `datasets`, and of a hub, as rows of plain values.

Files are read by pyarrow and our own readers; no code of a dataset runs, and none of its patterns
leads to a file or an address outside of it. That is why `datasets.load_dataset` is not used: its
patterns may. Knows no database but for `spool`.
"""
