-- The common name for the hosts of one search engine, network, AI product or mail service. A host matches itself and
-- its subdomains, if they have its referrer_type; "name.*" matches that name with any country's suffix.
CREATE TABLE referrer_sources AS SELECT * FROM (VALUES
    ('search', 'google.*', 'Google'), ('search', 'android-app://com.google.android.googlequicksearchbox', 'Google'),
    ('search', 'bing.com', 'Bing'), ('search', 'duckduckgo.com', 'DuckDuckGo'),
    ('search', 'android-app://com.duckduckgo.mobile.android', 'DuckDuckGo'), ('search', 'yahoo.*', 'Yahoo'),
    ('search', 'yandex.*', 'Yandex'), ('search', 'ya.ru', 'Yandex'),
    ('search', 'android-app://ru.yandex.searchplugin', 'Yandex'), ('search', 'baidu.com', 'Baidu'),
    ('search', 'ecosia.org', 'Ecosia'), ('search', 'android-app://com.ecosia.android', 'Ecosia'),
    ('search', 'qwant.com', 'Qwant'), ('search', 'startpage.com', 'Startpage'),
    ('search', 'search.naver.com', 'Naver'), ('search', 'search.seznam.cz', 'Seznam'),
    ('search', 'sogou.com', 'Sogou'), ('search', 'metager.org', 'MetaGer'), ('search', 'metager.de', 'MetaGer'),
    ('search', 'search.aol.com', 'AOL'), ('search', 'suche.gmx.net', 'GMX'), ('search', 'search.gmx.com', 'GMX'),
    ('social', 'facebook.com', 'Facebook'), ('social', 'fb.com', 'Facebook'), ('social', 'fb.me', 'Facebook'),
    ('social', 'android-app://com.facebook.katana', 'Facebook'),
    ('social', 'android-app://com.facebook.lite', 'Facebook'), ('social', 'messenger.com', 'Messenger'),
    ('social', 'android-app://com.facebook.orca', 'Messenger'), ('social', 'instagram.com', 'Instagram'),
    ('social', 'android-app://com.instagram.android', 'Instagram'), ('social', 'threads.net', 'Threads'),
    ('social', 'threads.com', 'Threads'), ('social', 'android-app://com.instagram.barcelona', 'Threads'),
    ('social', 't.co', 'X'), ('social', 'twitter.com', 'X'), ('social', 'x.com', 'X'),
    ('social', 'android-app://com.twitter.android', 'X'), ('social', 'linkedin.com', 'LinkedIn'),
    ('social', 'lnkd.in', 'LinkedIn'), ('social', 'android-app://com.linkedin.android', 'LinkedIn'),
    ('social', 'reddit.com', 'Reddit'), ('social', 'redd.it', 'Reddit'),
    ('social', 'android-app://com.reddit.frontpage', 'Reddit'), ('social', 'youtube.com', 'YouTube'),
    ('social', 'youtu.be', 'YouTube'), ('social', 'android-app://com.google.android.youtube', 'YouTube'),
    ('social', 'pinterest.*', 'Pinterest'), ('social', 'pin.it', 'Pinterest'),
    ('social', 'android-app://com.pinterest', 'Pinterest'), ('social', 'tiktok.com', 'TikTok'),
    ('social', 'android-app://com.zhiliaoapp.musically', 'TikTok'), ('social', 'snapchat.com', 'Snapchat'),
    ('social', 'android-app://com.snapchat.android', 'Snapchat'), ('social', 'bsky.app', 'Bluesky'),
    ('social', 'android-app://xyz.blueskyweb.app', 'Bluesky'), ('social', 'discord.com', 'Discord'),
    ('social', 'discordapp.com', 'Discord'), ('social', 'android-app://com.discord', 'Discord'),
    ('social', 't.me', 'Telegram'), ('social', 'telegram.me', 'Telegram'), ('social', 'telegram.org', 'Telegram'),
    ('social', 'android-app://org.telegram.messenger', 'Telegram'), ('social', 'whatsapp.com', 'WhatsApp'),
    ('social', 'wa.me', 'WhatsApp'), ('social', 'android-app://com.whatsapp', 'WhatsApp'),
    ('social', 'line.me', 'LINE'), ('social', 'android-app://jp.naver.line.android', 'LINE'),
    ('social', 'vk.com', 'VK'), ('social', 'vk.ru', 'VK'), ('social', 'android-app://com.vkontakte.android', 'VK'),
    ('social', 'weibo.com', 'Weibo'), ('social', 'weibo.cn', 'Weibo'), ('social', 't.cn', 'Weibo'),
    ('social', 'android-app://com.sina.weibo', 'Weibo'), ('social', 'stackexchange.com', 'Stack Exchange'),
    ('social', 'livejournal.com', 'LiveJournal'), ('social', 'tumblr.com', 'Tumblr'),
    ('social', 'quora.com', 'Quora'), ('social', 'medium.com', 'Medium'), ('social', 'github.com', 'GitHub'),
    ('ai', 'chatgpt.com', 'ChatGPT'), ('ai', 'openai.com', 'ChatGPT'),
    ('ai', 'android-app://com.openai.chatgpt', 'ChatGPT'), ('ai', 'claude.ai', 'Claude'),
    ('ai', 'claude.com', 'Claude'), ('ai', 'android-app://com.anthropic.claude', 'Claude'),
    ('ai', 'perplexity.ai', 'Perplexity'), ('ai', 'perplexity.com', 'Perplexity'), ('ai', 'pplx.ai', 'Perplexity'),
    ('ai', 'android-app://ai.perplexity.app.android', 'Perplexity'), ('ai', 'gemini.google.com', 'Gemini'),
    ('ai', 'bard.google.com', 'Gemini'), ('ai', 'aistudio.google.com', 'Gemini'), ('ai', 'gemini.google', 'Gemini'),
    ('ai', 'android-app://com.google.android.apps.bard', 'Gemini'), ('ai', 'notebooklm.google.com', 'NotebookLM'),
    ('ai', 'notebook.google.com', 'NotebookLM'), ('ai', 'notebooklm.google', 'NotebookLM'),
    ('ai', 'copilot.microsoft.com', 'Copilot'), ('ai', 'copilot.com', 'Copilot'),
    ('ai', 'copilot.cloud.microsoft', 'Copilot'), ('ai', 'm365.cloud.microsoft', 'Copilot'),
    ('ai', 'edgeservices.bing.com', 'Copilot'), ('ai', 'android-app://com.microsoft.copilot', 'Copilot'),
    ('ai', 'grok.com', 'Grok'), ('ai', 'x.ai', 'Grok'), ('ai', 'x.com', 'Grok'),
    ('ai', 'android-app://ai.x.grok', 'Grok'), ('ai', 'deepseek.com', 'DeepSeek'),
    ('ai', 'android-app://com.deepseek.chat', 'DeepSeek'), ('ai', 'mistral.ai', 'Mistral'),
    ('ai', 'android-app://ai.mistral.chat', 'Mistral'), ('ai', 'meta.ai', 'Meta AI'),
    ('ai', 'android-app://com.facebook.stella', 'Meta AI'), ('ai', 'poe.com', 'Poe'),
    ('ai', 'android-app://com.poe.android', 'Poe'), ('ai', 'android-app://com.quora.poe', 'Poe'),
    ('email', 'mail.google.com', 'Gmail'), ('email', 'android-app://com.google.android.gm', 'Gmail'),
    ('email', 'outlook.live.com', 'Outlook'), ('email', 'outlook.office.com', 'Outlook'),
    ('email', 'outlook.office365.com', 'Outlook'), ('email', 'outlook.cloud.microsoft', 'Outlook'),
    ('email', 'android-app://com.microsoft.office.outlook', 'Outlook'), ('email', 'mail.yahoo.com', 'Yahoo Mail'),
    ('email', 'android-app://com.yahoo.mobile.client.android.mail', 'Yahoo Mail'),
    ('email', 'mail.proton.me', 'Proton Mail'), ('email', 'mail.protonmail.com', 'Proton Mail'),
    ('email', 'android-app://ch.protonmail.android', 'Proton Mail')
) AS names(referrer_type, host, source);

CREATE MACRO source_named(type, name) AS (
    (SELECT map_from_entries(list((referrer_type || ' ' || host, source))) FROM referrer_sources)[type || ' ' || name]
);

-- The source of a referrer: the row of the host itself, of its last three or two labels, or of its name in any country;
-- otherwise the host.
CREATE MACRO source_of(referrer, type) AS coalesce(
    source_named(type, referrer),
    source_named(type, regexp_extract(referrer, '^[^:/]*?([^.:/]+[.][^.]+[.][^.]+)$', 1)),
    source_named(type, regexp_extract(referrer, '^[^:/]*?([^.:/]+[.][^.]+)$', 1)),
    source_named(type, regexp_extract(referrer, '^(?:[^:/]*?[.])??([^.:/]+)[.](com|[a-z]{2}|com?[.][a-z]{2})$', 1) || '.*'),
    referrer
);
