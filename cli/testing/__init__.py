"""Retrieved contexts and answers judged inside of pytest."""
