"""The run itself: runner, store, results, summary."""
