"""Parameters that are averaged now and then, in the place of gradients."""
