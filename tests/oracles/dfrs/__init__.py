"""The rules of DFRS, one idea in each module; tests/policies/dfrs compares them with the kernels."""
