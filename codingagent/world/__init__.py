"""Does: one module for each outside thing. They do not import one another.

Three lie below the others: `disk` for all that writes in the home, `folders` and `tree` for `workspace`.
"""
