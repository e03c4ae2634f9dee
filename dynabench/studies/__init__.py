"""Randomised studies: arms compared fairly, a plan before the data, effects with intervals.

In the order of imports, above `dynabench.campaigns`, which recruits the people of each arm.
"""
