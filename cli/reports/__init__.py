"""What is made of finished runs: for people, for CI and for monitoring."""
