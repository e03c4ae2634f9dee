"""Pure numbers of a model's answers: metrics, intervals, robustness, comparison."""
