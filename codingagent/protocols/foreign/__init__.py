"""Answers in the formats that models use by themselves."""
