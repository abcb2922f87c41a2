"""The figures of the book: one function per figure, one module per chapter."""
