"""Research code: campaigns and their reports, rival algorithms, theory, simulated traffic."""
