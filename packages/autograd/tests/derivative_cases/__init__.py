"""The calls whose derivatives are checked, by family."""
