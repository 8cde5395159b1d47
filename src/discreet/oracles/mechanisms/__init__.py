"""One mechanism per file: an oracle, a problem and a budget become public numbers and a fit."""
