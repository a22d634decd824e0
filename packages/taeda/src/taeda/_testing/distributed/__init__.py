"""What tests of programs for several processes take from the library."""
