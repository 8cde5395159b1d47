"""The dashboard ``/ui``: public figures of an experiment, and the changes of operators."""
