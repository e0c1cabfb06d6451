-- The user agents (site_agents) of domains on which at least five of them load at least as many images, stylesheets,
-- scripts and fonts as pages.
CREATE OR REPLACE TEMP TABLE loading_agents AS
SELECT site, agent, assets, pages FROM site_agents
SEMI JOIN (
    SELECT site FROM site_agents WHERE assets > 0
    GROUP BY site HAVING count(*) >= 5 AND sum(assets) >= sum(pages)
) AS sites USING (site)
