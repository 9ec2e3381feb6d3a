"""codingagent: a coding agent that works through any web chat, by copy and paste."""

__version__ = "0.1.0"
PROTOCOL_VERSION = "1.0"
