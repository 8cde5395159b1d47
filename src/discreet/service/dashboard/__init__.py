"""The dashboard ``/ui``: what is public by the model, and what operators change."""
