"""Learning live: profiles of programs from what the agents measure of jobs that run anyway."""
