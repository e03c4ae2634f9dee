"""Files from strangers: received in pieces, and checked before anything of them is used.

Any other folder of the room may import it; it knows only the models.
"""
