"""Finding a daemon and connecting to it."""
