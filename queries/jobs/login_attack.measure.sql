-- POST requests for the login, and how many of them were login attempts not made by people.
SELECT number, day, total_if(1, is_tried(status) AND NOT is_person(bot_category)) AS events, count(*) AS visits
FROM visits_with_aside AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain AND plain_path(visits.path) = subject.path
WHERE method = 'POST'
GROUP BY number, day
ORDER BY number, day;
