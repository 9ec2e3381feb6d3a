"""JSON-RPC 2.0: the protocol, its server and its client."""
