"""How each policy is simulated: its runner reads a trace in the form that the policy needs, and can then replay it.

A policy's specification names its runner, a function of one of these modules; a process imports the one that it uses.
Portfolios, FCFS and EASY, Slurm alone, DFRS and rescheduling have compiled loops. The plain event engine replays what
these lack: progress under contention, learning, and any policy that is known by its plans alone.
"""
