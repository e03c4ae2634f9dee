"""Published datasets, in folders of the library `datasets` or on a hub, as rows of plain values.

Files are read by pyarrow and our own readers. Unlike with `datasets.load_dataset`, no code of a
dataset runs, and its patterns match only its own files. Only `spool` uses Django.
"""
