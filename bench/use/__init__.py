"""How well events and stretches are found in recordings of people who were not learned from."""
