"""How does each client's script say what held and what did not?"""

import sys
import traceback

checks = []


def check(function):
    """Has a function be run by `main`; its name says what should hold."""
    checks.append(function)
    return function


def same(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def fails(exception, call, told):
    """A call has to fail with this exception, which says what is wrong."""
    try:
        call()
    except exception as error:
        said = " ".join(str(part) for part in [error, getattr(error, "msg", "")])
        if hasattr(error, "read"):
            said += error.read().decode()
        assert told in said, f"{told!r} is not in {said!r}"
        return
    raise AssertionError(f"no error says {told!r}")


def main():
    """Runs all checks, one line each; ends with 1 where one failed."""
    failed = 0
    for function in checks:
        try:
            function()
            print(f"ok {function.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED {function.__name__}\n{traceback.format_exc()}", flush=True)
    sys.exit(1 if failed else 0)
