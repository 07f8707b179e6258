"""The net: what the library computes today, frozen in a file, so that a change of its structure can be proven equal."""
