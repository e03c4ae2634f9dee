"""Pictures and recordings: re-encoded from what people send, stored by digest, and served.

Contexts, forms and releases name them by digest; targets get their bytes.
"""
