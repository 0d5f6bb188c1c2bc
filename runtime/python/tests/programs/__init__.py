"""Programs whose digests are those of the same programs in Rust: `tests/tests/twins`."""
