"""The load generators: each is run, and its report understood."""
