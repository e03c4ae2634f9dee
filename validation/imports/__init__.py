"""History that was judged elsewhere: read line by line, stored whole or not at all.

For the command `import_examples`; evaluation reads the same rows.
"""
