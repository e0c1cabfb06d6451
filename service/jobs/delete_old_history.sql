DELETE FROM job_history WHERE job_id = ?1
    AND id <= (SELECT id FROM job_history WHERE job_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)
    AND id NOT IN (
        SELECT min(id) FROM job_history WHERE job_id = ?1
        UNION ALL
        SELECT max(id) FROM job_history WHERE job_id = ?1 GROUP BY action, from_status, to_status)
