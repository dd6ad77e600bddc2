"""Pure decisions: one package per published method. No clock, file, log or random source of its own."""
