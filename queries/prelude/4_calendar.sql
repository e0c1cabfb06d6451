-- Every day and week of the scope, every hour and weekday: dense answers join these to include periods without visits.

CREATE VIEW days_in_scope AS
SELECT CAST(unnest(generate_series(
    getvariable('scope').start_date::TIMESTAMP, getvariable('scope').end_date::TIMESTAMP, INTERVAL 1 DAY)) AS DATE) AS day;

CREATE VIEW weeks_in_scope AS SELECT DISTINCT week_of(day) AS week FROM days_in_scope;

CREATE VIEW hours AS SELECT CAST(unnest(range(24)) AS BIGINT) AS hour;

CREATE VIEW weekdays AS
SELECT weekdays.day_of_week, day_name_of(weekdays.day_of_week) AS day_name, count(day) AS days_in_range
FROM (SELECT CAST(unnest(range(1, 8)) AS BIGINT) AS day_of_week) AS weekdays
LEFT JOIN days_in_scope ON weekday_of(day) = weekdays.day_of_week
GROUP BY weekdays.day_of_week;
