"""The ways to compute a layer that the suites compare, one module for each library."""
