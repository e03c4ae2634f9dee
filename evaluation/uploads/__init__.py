"""Files that strangers send: in pieces, and checked before anything of them is used."""
