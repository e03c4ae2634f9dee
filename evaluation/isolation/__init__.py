"""Strangers' files and models: checked, held in a sandbox, run and measured."""
