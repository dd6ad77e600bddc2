"""The rules of rescheduling, one idea in each module; tests/policies/rescheduling compares them with the kernels."""
