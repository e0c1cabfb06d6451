-- For one cursor: the visits of a link were read already, all that relations look at of them.
CREATE OR REPLACE TEMP VIEW raw_visits AS SELECT getvariable('scope').domain AS for_domain, * FROM gathered_visits;

CREATE OR REPLACE TEMP VIEW raw_automata AS FROM raw_visits WHERE NOT is_human(bot_category);
