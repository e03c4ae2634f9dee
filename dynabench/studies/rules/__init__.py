"""Pure rules of studies: the plan, the draws, the effects, and whole studies in memory."""
