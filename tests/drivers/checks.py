"""Named checks with a line each and the closing tally, for the Python scripts."""


class Checks:
    """Counts checks. `known` maps the name of a check that is known to fail to the reason; if it passes, that is a failure too."""

    def __init__(self, known):
        self.known = dict(known)
        self.passed = 0
        self.failed = 0

    def equal(self, name, expected, body):
        """Passes if body's result equals `expected`; an exception is a failure."""
        detail = None
        try:
            actual = body()
            if actual != expected or type(actual) is not type(expected):
                detail = f"expected {expected!r} got {actual!r}"[:1000]
        except Exception as error:  # whatever went wrong is the check's result
            detail = f"{type(error).__name__}: {error}"[:1000]
        self._record(name, detail)

    def fail(self, name, detail):
        self._record(name, detail)

    def _record(self, name, detail):
        reason = self.known.pop(name, None)
        if detail is None and reason is None:
            self.passed += 1
            print(f"ok {name}", flush=True)
        elif detail is not None and reason is not None:
            self.passed += 1
            print(f"ok {name} # fails as known ({reason}): {detail}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL {name}: {detail or f'passes, though it is known to fail: {reason}'}", flush=True)

    def tally(self):
        """Prints the tally; gives the exit status."""
        left = list(self.known)
        self.known.clear()
        for name in left:
            self.fail(name, "listed as a known failure, but it did not run")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed else 0
