"""Everything that rooms of the service share: settings, its database, requests, page layout, command line."""
