"""How jobs are leased, run in a process of their own, and cleaned up after."""
