"""The modules that make a vector of a case: an encoder that is pooled, what stands beside it, and the compression."""
