"""Pictures and recordings: re-encoded on upload, stored by digest, and served.

Contexts, forms and releases name them by digest; targets get their bytes.
"""
