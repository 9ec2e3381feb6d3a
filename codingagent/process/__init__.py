"""Run commands: limits, the sandbox, and the whole process tree."""
