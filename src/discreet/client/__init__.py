"""Clients of a decision service: over HTTP, or with its published and signed releases."""

from discreet.client.async_client import AsyncClient
from discreet.client.billboard import Billboard
from discreet.client.sync_client import Client, Decision, Ticket

__all__ = ["AsyncClient", "Billboard", "Client", "Decision", "Ticket"]
