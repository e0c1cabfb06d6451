-- Facts about a single request that several signals use: whether it is for a file of a page, by its path; whether it is
-- for an icon of the site, which programs request, too; whether it was served; whether it followed a link that redirected;
-- whether it sent data to a path that takes none.
CREATE OR REPLACE TEMP MACRO is_file(path, file_pattern) AS
    CASE WHEN contains(path, '.') THEN regexp_matches(path, file_pattern) ELSE FALSE END;
CREATE OR REPLACE TEMP MACRO is_icon(path) AS contains(path, 'favicon') OR contains(path, 'apple-touch-icon');
CREATE OR REPLACE TEMP MACRO is_served(status) AS coalesce(status BETWEEN 200 AND 299 OR status = 304, FALSE);
CREATE OR REPLACE TEMP MACRO is_click(short_code, status) AS
    coalesce(short_code IS NOT NULL AND status BETWEEN 300 AND 399 AND status <> 304, FALSE);
CREATE OR REPLACE TEMP MACRO is_refused_post(method, status) AS
    coalesce(method NOT IN ('GET', 'HEAD') AND status IN (405, 501), FALSE);
