"""What every entry of a registry promises, and the tests that ask each of them."""
