"""Language models that judge an arena's battles, each asked twice with the sides swapped."""
