"""Actions of a request: catalogues, offers, changes over time, and the decision made among them."""
