"""The compiled replay of a trace: matching only, any number of jobs."""
