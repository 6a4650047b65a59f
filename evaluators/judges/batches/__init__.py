"""The Batch API of an OpenAI-compatible endpoint: files of requests, answered within a day at half the price."""
