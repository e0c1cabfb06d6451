-- What the last cube of a month tells of one relation on days that are closed still.
SELECT * EXCLUDE (organization, month, relation) FROM cubed(getvariable('relation'));
