"""The suites: each module defines ``jobs()``, or ``run()`` where it measures in its own way."""
