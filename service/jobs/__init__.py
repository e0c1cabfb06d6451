"""Jobs: what should be done about the traffic, who decided what about it, what was done, and whether it helped."""
