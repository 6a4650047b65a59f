"""What replies cost: prices, bills, and the budget that a run may not pass."""
