"""Imports of examples that were judged elsewhere, stored completely or not at all.

Used by the command `import_examples`; evaluation reads the same rows.
"""
