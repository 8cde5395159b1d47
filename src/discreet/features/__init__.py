"""From contexts to features in the unit ball, by public rules."""
