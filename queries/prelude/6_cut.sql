-- Unlimited untrusted input must not make answers unlimited. Relations keyed by referrer, campaign, agent or
-- domain keep the words with the most visits on a day of the organization, regardless of other filters in the scope; all
-- others become '(other)'. A relation filtered by its own word is not cut. Reads one more session variable,
-- high_cardinality_days: the days that are counted from visits and have more visits than the maximum number of words.
-- Without such days, nothing can be cut and relations read visits like all others.

CREATE MACRO max_values_per_day() AS 10000;  -- kept of each day; also MAX_VALUES_PER_DAY in queries/snapshot.py
CREATE MACRO max_rows() AS 1000;  -- of an answer

-- Whether words of a day are cut; `word` is the scope's filter for them.
CREATE MACRO has_high_cardinality(day, word) AS
    word IS NULL AND list_contains(CAST(getvariable('high_cardinality_days') AS DATE[]), day);
CREATE MACRO has_high_cardinality_days() AS len(getvariable('high_cardinality_days')) > 0;

CREATE MACRO or_other(text, is_rest) AS CASE WHEN is_rest THEN '(other)' ELSE text END;

-- Whether a row of an answer is merged into its row '(other)': if it was cut already, or if the answer would have more
-- than max_rows() rows and its rank leaves no room for `others` rows of '(other)'.
CREATE MACRO is_rest(is_cut, place, others) AS
    is_cut OR place > max_rows() - others AND (count(*) OVER () > max_rows() OR bool_or(is_cut) OVER ());
