"""Secrets outside the database: the vault, encryption of rows, authenticated decision ids."""
