"""Decide what a command or an operation may do: allow, ask or deny. Pure."""
