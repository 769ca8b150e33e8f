"""Types into the interactive session of `tidegraph query` on a pseudo terminal, and prints all that it shows.

Usage: session.py BINARY ENDPOINT < what is typed, a line each
"""

import os
import pty
import select
import sys
import time

PROMPTS = ("tidegraph> ", "         > ")
LONGEST_S = 30


def main():
    binary, endpoint = sys.argv[1:]
    lines = sys.stdin.read().splitlines()
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "dumb"
        os.execv(binary, [binary, "query", "--endpoint", endpoint])
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
