"""What files hold, as JSON Schemas: those that are written and those that people write."""
