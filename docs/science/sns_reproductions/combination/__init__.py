"""What decides in the policy that joins Max-Jobs and Spread-n-Share: a study of our own."""
