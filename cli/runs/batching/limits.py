"""How large a part may be, and how often is asked how it goes."""

MOST_REQUESTS = 50_000
"""Of a batch, by OpenAI's documentation; https://platform.openai.com/docs/guides/batch."""
MOST_CAPPED_REQUESTS = 1_000
"""The same where the cost is capped: a batch is allowed or not as a whole."""
MOST_BYTES = 190_000_000
"""Of its file; 200 MB are allowed."""
FIRST_POLL_SECONDS = 1.0
LONGEST_POLL_SECONDS = 60.0
POLL_GROWTH = 1.5
TRIES = 10
"""At a call that fails with errors that may pass; with growing waits some five minutes."""
FIRST_WAIT_SECONDS = 1.0
ALONE_TRIES = 6
"""Waits for room for a batch that cannot be made smaller, while none of ours takes any."""
HORIZON_SECONDS = 7 * 86400.0
"""How old a batch may be that is adopted; one ends within a day, its files stay for a month."""
SLACK_SECONDS = 86400.0
"""By how much the clocks of two machines may differ."""
LINES_AT_ONCE = 500
"""Replies that are kept in one transaction."""
