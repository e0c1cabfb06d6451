-- The distinct questions to the classifier; each fact then holds the number of its question.
CREATE OR REPLACE TEMP TABLE asked AS
SELECT row_number() OVER () AS request, * FROM (SELECT DISTINCT user_agent, method, referrer, query FROM facts);

CREATE OR REPLACE TEMP TABLE facts AS
SELECT facts.* EXCLUDE (user_agent, referrer, query), request
FROM facts JOIN asked USING (user_agent, method, referrer, query);
