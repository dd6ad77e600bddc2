"""The event engine: one heap of events, under matching or under any policy."""
