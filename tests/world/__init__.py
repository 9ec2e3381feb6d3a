"""World tests: real files, links and processes."""
