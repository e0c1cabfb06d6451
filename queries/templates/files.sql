-- Requests that are counted, and how many of them are files: none where files are set aside.
SELECT count(*) AS visits, total_if(1, is_file) AS files FROM visits_with_aside WHERE aside IS NULL
ORDER BY visits;
