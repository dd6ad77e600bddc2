"""The compiled replays of a trace: matching, FCFS and EASY, DFRS, pools."""
