"""What a finished run becomes for others: pages and files."""
