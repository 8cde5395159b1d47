"""HTTP: routes, request parsing, limits, and the server process."""
