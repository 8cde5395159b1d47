"""What must stay secret: the vault, sealed rows, decision ids, API keys."""
