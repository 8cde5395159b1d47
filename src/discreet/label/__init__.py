"""One page that says what a guarantee means: for people, and as a signed document."""
