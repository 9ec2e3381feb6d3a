"""Does: one module for each outside thing. They do not import one another,
save what lies below them all: `disk`, and `folders` and `tree` below `workspace`."""
