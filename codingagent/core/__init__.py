"""Decides: values in, values out. No files, processes, clock, terminal or network."""
