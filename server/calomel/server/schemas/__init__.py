"""The bodies of requests and responses, one file per family of routes."""
