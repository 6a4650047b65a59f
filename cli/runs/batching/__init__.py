"""A run through the Batch API: what the store lacks is planned, sent in parts, waited for and collected."""
