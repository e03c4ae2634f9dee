"""Requests and answers: the API's shape, forms, limits of bodies, refusals, the web server."""
