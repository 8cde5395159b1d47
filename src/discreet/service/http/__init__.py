"""What speaks HTTP: routes, parsing, limits, errors, metrics, the server process."""
