"""What an evaluator's reply may hold, one module for each family of kinds."""
