"""How others ask the running scheduler: for now its Unix socket."""
