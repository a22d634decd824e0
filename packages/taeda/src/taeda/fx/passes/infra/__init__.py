"""How passes are written and put in order."""
