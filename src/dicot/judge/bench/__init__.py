"""The benchmark: jobs, suites, the ledger they are recorded in, and what runs them."""
