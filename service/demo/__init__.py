"""The sample traffic of `traffic demo`, its countries, and a problem for every detector."""
