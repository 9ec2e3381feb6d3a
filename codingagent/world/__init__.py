"""Does: one module for each outside thing. They do not import one another."""
