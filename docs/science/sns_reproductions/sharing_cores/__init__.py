"""What a partition would give whose jobs share cores: beside EASY, gang scheduling, and with jobs that can restart."""
