"""The exercises of the book, one folder for each chapter."""
