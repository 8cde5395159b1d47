"""Clients of a decision service: over HTTP, or with its published and signed releases."""

from discreet.client.billboard import Billboard
from discreet.client.http_client import AsyncClient, Client, Decision, Ticket

__all__ = ["AsyncClient", "Billboard", "Client", "Decision", "Ticket"]
