"""What is told: answers to status, queue, explain and profile, and the record of decisions."""
