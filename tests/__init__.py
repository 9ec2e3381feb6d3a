"""Tests: each names a rule and says in its docstring where the rule comes from."""
