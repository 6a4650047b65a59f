"""The tables of a store, version by version."""

VERSIONS = (
    """
CREATE TABLE replies (
    key BLOB NOT NULL, number INTEGER NOT NULL, text TEXT, finish_reason TEXT NOT NULL, refusal TEXT, model TEXT,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
    received REAL NOT NULL, PRIMARY KEY (key, number)
) WITHOUT ROWID;
CREATE TABLE failures (
    key BLOB PRIMARY KEY, kind TEXT NOT NULL, message TEXT NOT NULL, noted REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE endpoints (address TEXT NOT NULL, model TEXT NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (address, model));
CREATE TABLE runs (started REAL PRIMARY KEY, ended REAL, summary TEXT);
""",
    """
ALTER TABLE replies ADD COLUMN run REAL;
ALTER TABLE runs ADD COLUMN output TEXT;
CREATE TABLE unanswered (run REAL NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL);
CREATE TABLE experience (
    address TEXT NOT NULL, model TEXT NOT NULL, fingerprint BLOB NOT NULL, sums TEXT NOT NULL,
    PRIMARY KEY (address, model, fingerprint)
) WITHOUT ROWID;
""",
    """
ALTER TABLE replies ADD COLUMN batch INTEGER NOT NULL DEFAULT 0;
CREATE TABLE batch_runs (
    number INTEGER PRIMARY KEY, output TEXT NOT NULL, base_url TEXT NOT NULL, model TEXT NOT NULL,
    api_key_env TEXT NOT NULL, insecure INTEGER NOT NULL,
    begun REAL NOT NULL, ended REAL, surveyed INTEGER NOT NULL DEFAULT 0, rounds INTEGER NOT NULL DEFAULT 0,
    most_tokens INTEGER
);
CREATE TABLE batches (
    number INTEGER PRIMARY KEY, run INTEGER NOT NULL, hash TEXT NOT NULL, state TEXT NOT NULL, planned REAL NOT NULL,
    requests INTEGER NOT NULL, bytes INTEGER NOT NULL, tokens INTEGER NOT NULL, dialect TEXT NOT NULL,
    file TEXT, batch TEXT, status TEXT, completed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
    created REAL, ended REAL, cancelled INTEGER NOT NULL DEFAULT 0, company INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
    cached_tokens INTEGER NOT NULL DEFAULT 0, reasoning_tokens INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE batch_requests (
    part INTEGER NOT NULL, key BLOB NOT NULL, prompt BLOB NOT NULL, room TEXT NOT NULL, outcome TEXT,
    PRIMARY KEY (part, key)
) WITHOUT ROWID;
CREATE INDEX batch_requests_by_key ON batch_requests (key);
""",
)
"""What makes a store of each version out of one of the version before."""
SCHEMA_VERSION = len(VERSIONS)
