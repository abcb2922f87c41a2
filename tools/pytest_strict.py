"""pytest plugin: a run in which any test was expected to fail has failed.

nbval marks the cells after a time-out as expected failures, so that such a run would look green.
"""

from __future__ import annotations

import pytest

EXPECTED = pytest.StashKey[list]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[EXPECTED] = []
    config.pluginmanager.register(_Collector(config), "strict-expectations")


class _Collector:
    """Remembers every report of an expected failure and turns the run red at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self.found = config.stash[EXPECTED]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if hasattr(report, "wasxfail") and report.nodeid not in self.found:
            self.found.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.found and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.found:
            terminalreporter.section("expected failures count as failures", red=True)
            for name in self.found:
                terminalreporter.line(name)
