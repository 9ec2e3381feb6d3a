"""The command line and its screens: thin front ends of the agent.

Any function here may raise a CodingAgentError; `main.run` prints its message and returns its exit status.
"""
