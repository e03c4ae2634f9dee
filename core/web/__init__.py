"""HTTP: the shape of the API, forms, limits on bodies, refusals, the web server."""
