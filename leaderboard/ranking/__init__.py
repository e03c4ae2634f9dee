"""Pure rules of ranking models: Dynascore, weights, ranks, the Pareto front."""
