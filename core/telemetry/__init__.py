"""Monitoring of a running site: logs, counters, traces, error reports."""
