"""Commands for a running cluster and its configuration."""
