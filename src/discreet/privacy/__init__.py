"""Budgets, events, accounting, noise and the ledger: what privacy costs, and which records paid."""
