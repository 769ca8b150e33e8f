"""Runs a command on a pseudo terminal, types into it where it prompts, and prints all that it shows.

Usage: session.py COMMAND... < what is typed, a line each
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

PROMPTS = ("tidegraph> ", "         > ")
LONGEST_S = 600
SIZE = struct.pack("HHHH", 40, 120, 0, 0)


def main():
    command = sys.argv[1:]
    lines = sys.stdin.read().splitlines()
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, SIZE)
        os.execv(command[0], command)
    shown, seen, deadline = "", 0, time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                chunk = os.read(terminal, 65536)
            except OSError:  # Linux's way to say that the other side is closed.
                break
            if not chunk:
                break
            shown += chunk.decode(errors="replace")
        # The next line is typed when the prompt is there, as a person does.
        elif shown[seen:].endswith(PROMPTS) and lines:
            seen = len(shown)
            os.write(terminal, lines.pop(0).encode() + b"\n")
    _, status = os.waitpid(child, 0)
    print(shown.replace("\r", ""))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
