"""The rules of compiled policies in plain Python and exact numbers, for tests that compare them with the kernels."""
