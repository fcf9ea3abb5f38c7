"""The module that the fork server of `lift.runtime.isolate` imports first: from here on SIGINT ends it without a word.

It imports for seconds, and a terminal sends Ctrl-C to it as well as to the command. Later it ignores SIGINT."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # it is started with the signal blocked
