"""What the scheduler and the agents on the nodes tell each other: grants, messages, and how they are authenticated."""
