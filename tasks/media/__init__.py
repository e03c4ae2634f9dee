"""Pictures and recordings: made anew from what people send, stored by digest, and served.

Contexts, forms and releases name them by digest; targets get their bytes.
"""
