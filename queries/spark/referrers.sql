-- Compiled from queries/templates/referrers.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH visits_in_days AS (
    SELECT
        *
    FROM visits
    WHERE
        organization = CAST(:organization AS STRING)
        AND day BETWEEN CAST(:start_date AS DATE) AND CAST(:end_date AS DATE)
), all_visits AS (
    SELECT
        CAST(:domain AS STRING) AS for_domain,
        *
    FROM visits_in_days
), visits_to_count AS (
    SELECT
        *
    FROM all_visits
    WHERE
        (
            CAST(:short_code AS STRING) IS NULL OR short_code = CAST(:short_code AS STRING)
        )
        AND (
            CAST(:domain AS STRING) IS NULL OR domain = CAST(:domain AS STRING)
        )
        AND (
            CAST(:no_domain AS BOOLEAN) IS NULL OR domain IS NULL
        )
        AND (
            CAST(:traffic_type AS STRING) IS NULL
            OR bot_category = CAST(:traffic_type AS STRING)
            OR CAST(:traffic_type AS STRING) = 'ai'
            AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
            OR CAST(:traffic_type AS STRING) = 'other'
            AND bot_category IN ('search_crawler', 'other_bot')
        )
), crowded_visits AS (
    SELECT
        *
    FROM visits_in_days
    WHERE
        ARRAY_CONTAINS((
            SELECT
                COLLECT_LIST(day)
            FROM crowded_days
        ), day)
), kept AS (
    SELECT
        day,
        referrer
    FROM (
        SELECT
            day,
            referrer,
            CAST(ROW_NUMBER() OVER (PARTITION BY day ORDER BY COUNT(*) DESC, referrer NULLS LAST) AS BIGINT) AS place
        FROM crowded_visits
        WHERE
            NOT referrer IS NULL AND bot_category IN ('human', 'ai_referral')
        GROUP BY
            day,
            referrer
    )
    WHERE
        place <= 10000
), visits_with_cut_referrers AS (
    SELECT
        visits.for_domain,
        visits.visited_at,
        visits.domain,
        visits.short_code,
        visits.path,
        visits.method,
        visits.status,
        visits.bot_category,
        visits.agent_kind,
        visits.ai_source,
        visits.agent,
        visits.operator,
        visits.confidence,
        visits.detection_method,
        visits.device_type,
        visits.operating_system,
        visits.browser,
        visits.user_agent,
        visits.country,
        CASE
            WHEN NOT visits.referrer IS NULL
            AND ARRAY_CONTAINS((
                SELECT
                    COLLECT_LIST(day)
                FROM crowded_days
            ), visits.day)
            AND kept.day IS NULL
            THEN '(other)'
            ELSE visits.referrer
        END AS referrer,
        visits.referrer_type,
        visits.utm_source,
        visits.utm_medium,
        visits.utm_campaign,
        visits.utm_term,
        visits.utm_content,
        visits.visitor,
        visits.is_malicious,
        visits.rules_version,
        visits.protocol,
        visits.day,
        visits.organization
    FROM visits_to_count AS visits
    LEFT JOIN kept
        ON visits.day = kept.day AND visits.referrer = kept.referrer
), daily_referrers AS (
    SELECT
        for_domain,
        day,
        referrer,
        referrer_type,
        COUNT(*) AS visits,
        COUNT(*) FILTER(WHERE
            bot_category = 'human') AS human_clicks,
        COUNT(*) FILTER(WHERE
            bot_category = 'ai_referral') AS ai_referrals
    FROM visits_with_cut_referrers
    WHERE
        bot_category IN ('human', 'ai_referral')
    GROUP BY
        for_domain,
        day,
        referrer,
        referrer_type
), referrer_sources AS (
    SELECT
        *
    FROM VALUES
        ('search', 'google.*', 'Google'),
        ('search', 'android-app://com.google.android.googlequicksearchbox', 'Google'),
        ('search', 'bing.com', 'Bing'),
        ('search', 'duckduckgo.com', 'DuckDuckGo'),
        ('search', 'android-app://com.duckduckgo.mobile.android', 'DuckDuckGo'),
        ('search', 'yahoo.*', 'Yahoo'),
        ('search', 'yandex.*', 'Yandex'),
        ('search', 'ya.ru', 'Yandex'),
        ('search', 'android-app://ru.yandex.searchplugin', 'Yandex'),
        ('search', 'baidu.com', 'Baidu'),
        ('search', 'ecosia.org', 'Ecosia'),
        ('search', 'android-app://com.ecosia.android', 'Ecosia'),
        ('search', 'qwant.com', 'Qwant'),
        ('search', 'startpage.com', 'Startpage'),
        ('search', 'search.naver.com', 'Naver'),
        ('search', 'search.seznam.cz', 'Seznam'),
        ('search', 'sogou.com', 'Sogou'),
        ('search', 'metager.org', 'MetaGer'),
        ('search', 'metager.de', 'MetaGer'),
        ('search', 'search.aol.com', 'AOL'),
        ('search', 'suche.gmx.net', 'GMX'),
        ('search', 'search.gmx.com', 'GMX'),
        ('social', 'facebook.com', 'Facebook'),
        ('social', 'fb.com', 'Facebook'),
        ('social', 'fb.me', 'Facebook'),
        ('social', 'android-app://com.facebook.katana', 'Facebook'),
        ('social', 'android-app://com.facebook.lite', 'Facebook'),
        ('social', 'messenger.com', 'Messenger'),
        ('social', 'android-app://com.facebook.orca', 'Messenger'),
        ('social', 'instagram.com', 'Instagram'),
        ('social', 'android-app://com.instagram.android', 'Instagram'),
        ('social', 'threads.net', 'Threads'),
        ('social', 'threads.com', 'Threads'),
        ('social', 'android-app://com.instagram.barcelona', 'Threads'),
        ('social', 't.co', 'X'),
        ('social', 'twitter.com', 'X'),
        ('social', 'x.com', 'X'),
        ('social', 'android-app://com.twitter.android', 'X'),
        ('social', 'linkedin.com', 'LinkedIn'),
        ('social', 'lnkd.in', 'LinkedIn'),
        ('social', 'android-app://com.linkedin.android', 'LinkedIn'),
        ('social', 'reddit.com', 'Reddit'),
        ('social', 'redd.it', 'Reddit'),
        ('social', 'android-app://com.reddit.frontpage', 'Reddit'),
        ('social', 'youtube.com', 'YouTube'),
        ('social', 'youtu.be', 'YouTube'),
        ('social', 'android-app://com.google.android.youtube', 'YouTube'),
        ('social', 'pinterest.*', 'Pinterest'),
        ('social', 'pin.it', 'Pinterest'),
        ('social', 'android-app://com.pinterest', 'Pinterest'),
        ('social', 'tiktok.com', 'TikTok'),
        ('social', 'android-app://com.zhiliaoapp.musically', 'TikTok'),
        ('social', 'snapchat.com', 'Snapchat'),
        ('social', 'android-app://com.snapchat.android', 'Snapchat'),
        ('social', 'bsky.app', 'Bluesky'),
        ('social', 'android-app://xyz.blueskyweb.app', 'Bluesky'),
        ('social', 'discord.com', 'Discord'),
        ('social', 'discordapp.com', 'Discord'),
        ('social', 'android-app://com.discord', 'Discord'),
        ('social', 't.me', 'Telegram'),
        ('social', 'telegram.me', 'Telegram'),
        ('social', 'telegram.org', 'Telegram'),
        ('social', 'android-app://org.telegram.messenger', 'Telegram'),
        ('social', 'whatsapp.com', 'WhatsApp'),
        ('social', 'wa.me', 'WhatsApp'),
        ('social', 'android-app://com.whatsapp', 'WhatsApp'),
        ('social', 'line.me', 'LINE'),
        ('social', 'android-app://jp.naver.line.android', 'LINE'),
        ('social', 'vk.com', 'VK'),
        ('social', 'vk.ru', 'VK'),
        ('social', 'android-app://com.vkontakte.android', 'VK'),
        ('social', 'weibo.com', 'Weibo'),
        ('social', 'weibo.cn', 'Weibo'),
        ('social', 't.cn', 'Weibo'),
        ('social', 'android-app://com.sina.weibo', 'Weibo'),
        ('social', 'stackexchange.com', 'Stack Exchange'),
        ('social', 'livejournal.com', 'LiveJournal'),
        ('social', 'tumblr.com', 'Tumblr'),
        ('social', 'quora.com', 'Quora'),
        ('social', 'medium.com', 'Medium'),
        ('social', 'github.com', 'GitHub'),
        ('ai', 'chatgpt.com', 'ChatGPT'),
        ('ai', 'openai.com', 'ChatGPT'),
        ('ai', 'android-app://com.openai.chatgpt', 'ChatGPT'),
        ('ai', 'claude.ai', 'Claude'),
        ('ai', 'claude.com', 'Claude'),
        ('ai', 'android-app://com.anthropic.claude', 'Claude'),
        ('ai', 'perplexity.ai', 'Perplexity'),
        ('ai', 'perplexity.com', 'Perplexity'),
        ('ai', 'pplx.ai', 'Perplexity'),
        ('ai', 'android-app://ai.perplexity.app.android', 'Perplexity'),
        ('ai', 'gemini.google.com', 'Gemini'),
        ('ai', 'bard.google.com', 'Gemini'),
        ('ai', 'aistudio.google.com', 'Gemini'),
        ('ai', 'gemini.google', 'Gemini'),
        ('ai', 'android-app://com.google.android.apps.bard', 'Gemini'),
        ('ai', 'notebooklm.google.com', 'NotebookLM'),
        ('ai', 'notebook.google.com', 'NotebookLM'),
        ('ai', 'notebooklm.google', 'NotebookLM'),
        ('ai', 'copilot.microsoft.com', 'Copilot'),
        ('ai', 'copilot.com', 'Copilot'),
        ('ai', 'copilot.cloud.microsoft', 'Copilot'),
        ('ai', 'm365.cloud.microsoft', 'Copilot'),
        ('ai', 'edgeservices.bing.com', 'Copilot'),
        ('ai', 'android-app://com.microsoft.copilot', 'Copilot'),
        ('ai', 'grok.com', 'Grok'),
        ('ai', 'x.ai', 'Grok'),
        ('ai', 'x.com', 'Grok'),
        ('ai', 'android-app://ai.x.grok', 'Grok'),
        ('ai', 'deepseek.com', 'DeepSeek'),
        ('ai', 'android-app://com.deepseek.chat', 'DeepSeek'),
        ('ai', 'mistral.ai', 'Mistral'),
        ('ai', 'android-app://ai.mistral.chat', 'Mistral'),
        ('ai', 'meta.ai', 'Meta AI'),
        ('ai', 'android-app://com.facebook.stella', 'Meta AI'),
        ('ai', 'poe.com', 'Poe'),
        ('ai', 'android-app://com.poe.android', 'Poe'),
        ('ai', 'android-app://com.quora.poe', 'Poe'),
        ('email', 'mail.google.com', 'Gmail'),
        ('email', 'android-app://com.google.android.gm', 'Gmail'),
        ('email', 'outlook.live.com', 'Outlook'),
        ('email', 'outlook.office.com', 'Outlook'),
        ('email', 'outlook.office365.com', 'Outlook'),
        ('email', 'outlook.cloud.microsoft', 'Outlook'),
        ('email', 'android-app://com.microsoft.office.outlook', 'Outlook'),
        ('email', 'mail.yahoo.com', 'Yahoo Mail'),
        ('email', 'android-app://com.yahoo.mobile.client.android.mail', 'Yahoo Mail'),
        ('email', 'mail.proton.me', 'Proton Mail'),
        ('email', 'mail.protonmail.com', 'Proton Mail'),
        ('email', 'android-app://ch.protonmail.android', 'Proton Mail') AS names(referrer_type, host, source)
), hosts AS (
    SELECT
        COALESCE(referrer, '(direct)') AS referrer,
        COALESCE(referrer_type, 'direct') AS referrer_type,
        referrer IS NOT DISTINCT FROM '(other)' AS is_cut,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(human_clicks) AS BIGINT), 0) AS human_clicks,
        COALESCE(CAST(SUM(ai_referrals) AS BIGINT), 0) AS ai_referrals
    FROM daily_referrers
    GROUP BY
        COALESCE(referrer, '(direct)'),
        COALESCE(referrer_type, 'direct'),
        referrer IS NOT DISTINCT FROM '(other)'
), listed AS (
    SELECT
        *,
        is_cut
        OR CAST(ROW_NUMBER() OVER (ORDER BY is_cut NULLS LAST, visits DESC, referrer NULLS LAST, referrer_type NULLS LAST) AS BIGINT) > 1000 - 1
        AND (
            COUNT(*) OVER () > 1000 OR BOOL_OR(is_cut) OVER ()
        ) AS is_rest
    FROM hosts
)
SELECT
    CASE WHEN is_rest THEN '(other)' ELSE referrer END AS referrer,
    CASE WHEN is_rest THEN '(other)' ELSE referrer_type END AS referrer_type,
    COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
    CASE
        WHEN SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () > 0
        THEN CAST(CAST((
            200 * CAST(100 * CAST(COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS percentage,
    COALESCE(CAST(SUM(human_clicks) AS BIGINT), 0) AS human_clicks,
    COALESCE(CAST(SUM(ai_referrals) AS BIGINT), 0) AS ai_referrals,
    key_1 AS source
FROM (
    SELECT
        *,
        CASE
            WHEN is_rest
            THEN '(other)'
            ELSE COALESCE(
                ELEMENT_AT(
                    (
                        SELECT
                            MAP_FROM_ENTRIES(COLLECT_LIST(STRUCT(referrer_type || ' ' || host, source)))
                        FROM referrer_sources
                    ),
                    referrer_type || ' ' || referrer
                ),
                ELEMENT_AT(
                    (
                        SELECT
                            MAP_FROM_ENTRIES(COLLECT_LIST(STRUCT(referrer_type || ' ' || host, source)))
                        FROM referrer_sources
                    ),
                    referrer_type || ' ' || REGEXP_EXTRACT(referrer, '^[^:/]*?([^.:/]+[.][^.]+[.][^.]+)$', 1)
                ),
                ELEMENT_AT(
                    (
                        SELECT
                            MAP_FROM_ENTRIES(COLLECT_LIST(STRUCT(referrer_type || ' ' || host, source)))
                        FROM referrer_sources
                    ),
                    referrer_type || ' ' || REGEXP_EXTRACT(referrer, '^[^:/]*?([^.:/]+[.][^.]+)$', 1)
                ),
                ELEMENT_AT(
                    (
                        SELECT
                            MAP_FROM_ENTRIES(COLLECT_LIST(STRUCT(referrer_type || ' ' || host, source)))
                        FROM referrer_sources
                    ),
                    referrer_type || ' ' || (
                        REGEXP_EXTRACT(referrer, '^(?:[^:/]*?[.])??([^.:/]+)[.](com|[a-z]{2}|com?[.][a-z]{2})$', 1) || '.*'
                    )
                ),
                referrer
            )
        END AS key_1
    FROM listed
)
GROUP BY
    is_rest,
    CASE WHEN is_rest THEN '(other)' ELSE referrer END,
    CASE WHEN is_rest THEN '(other)' ELSE referrer_type END,
    key_1
ORDER BY
    is_rest NULLS LAST,
    visits DESC,
    referrer NULLS LAST,
    referrer_type NULLS LAST;
