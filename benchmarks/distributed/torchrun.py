"""torchrun, and the end of it when the process that started it is gone."""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def end_with_parent(how: signal.Signals) -> None:
    """On Linux, ask for a signal when the parent of this process ends, however it ends."""
    if sys.platform == "linux":
        parent, set_death_signal = os.getppid(), 1
        ctypes.CDLL(None).prctl(set_death_signal, how)
        if os.getppid() != parent:
            os.kill(os.getpid(), how)


if __name__ == "__main__":
    end_with_parent(signal.SIGTERM)
    from torch.distributed.run import main

    main()
