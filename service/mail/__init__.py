"""Weekly reports by mail: settings, the conversation with the SMTP server, and which report is due when."""
