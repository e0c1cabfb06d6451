"""What changes stored visits: merging, judging, erasing, retaining, classifying again."""
