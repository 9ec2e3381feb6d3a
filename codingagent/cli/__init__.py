"""The command line and its screens: thin front ends of the agent."""
