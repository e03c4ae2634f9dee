"""Files from strangers: received in pieces, and checked before use.

Any other folder of this app may import it. It imports only the models.
"""
