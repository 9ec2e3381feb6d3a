"""Replies in the formats that models use when nobody told them another."""
