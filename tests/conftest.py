"""What holds for every test."""

import signal

# A shell starts background jobs with Ctrl-C ignored, and every process that a test starts inherits it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
