"""How much of the texts machines wrote: signals, a labelled study, and the estimated share."""
