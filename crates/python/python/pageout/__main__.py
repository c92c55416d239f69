"""The program ``pageout``, as the package brings it."""

import signal
import sys

from . import _classes, _native


def main():
    # As of any program: a signal is the program's, and a reader that goes away ends it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _classes.bring_told()
    sys.exit(_native.main(["pageout", *sys.argv[1:]], [sys.executable, "-m", "pageout"]))


if __name__ == "__main__":
    main()
