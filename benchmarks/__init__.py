"""The measurements behind the book: suites, the variants they compare, and the samples they gave."""
