"""The program `traffic`: one file for each command."""
