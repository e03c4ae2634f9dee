"""The package on which all other rooms are built. It imports none of them."""
