"""Durable state: tables, transactions, slots, documents, API keys, and the anchor file."""
