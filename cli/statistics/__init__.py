"""Numbers in, numbers out: intervals, tests, agreement."""
