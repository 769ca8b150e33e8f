"""What a client of Neptune does with the service: each step works or is refused.

A script makes `Checks`, runs steps, and ends with `report()`, whose line of JSON the test puts into a table.
"""

import json
import os
import sys
from importlib.metadata import version


def arguments():
    """Returns the plain endpoint, the one with TLS, and the file:// URI of the library graph."""
    plain, tls, source = sys.argv[1:]
    return plain, tls, source


def port_of(endpoint):
    return int(endpoint.rsplit(":", 1)[1])


class Checks:
    def __init__(self, client, package):
        self.client = client
        self.version = version(package)
        self.works = []
        self.refused = []

    def step(self, name, run):
        """Runs a step that has to work; returns what it returns."""
        try:
            result = run()
        except Exception as error:
            raise AssertionError(f"{self.client}: {name}: {described(error)}") from error
        self.works.append(name)
        return result

    def refusal(self, name, code, run):
        """Runs a step that the service has to refuse with a code of Neptune."""
        try:
            run()
        except Exception as error:
            assert code in described(error), f"{self.client}: {name}: {described(error)}, not {code}"
            self.refused.append([name, code])
        else:
            raise AssertionError(f"{self.client}: {name} works, but {code} was expected")

    def report(self):
        row = {"client": self.client, "version": self.version, "works": self.works, "refused": self.refused}
        print(json.dumps(row), flush=True)


def described(error):
    """Returns the text of an error with the details that frameworks keep beside it."""
    details = [str(getattr(error, name)) for name in ("message", "details") if hasattr(error, name)]
    return " | ".join([f"{type(error).__name__}: {error}", *details])


def environment():
    """The region and the credentials come from the environment, as the frameworks read them."""
    return os.environ["AWS_REGION"]
