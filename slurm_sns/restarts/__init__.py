"""Whether a suspended job is expected to complete sooner where it is, or started again elsewhere. Pure."""
