"""What holds for every test."""

import os
import signal
import tempfile

# A shell starts background jobs with Ctrl-C ignored, and every process that a test starts inherits it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is remembered of homes must not come from, nor go into, the folders of whoever runs the tests.
_STATE = tempfile.TemporaryDirectory(prefix="codingagent-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name
