"""Models that people submit: the form and quota, the pages, and who may see what.

The top of the room: the API, jobs and other rooms import it.
"""
