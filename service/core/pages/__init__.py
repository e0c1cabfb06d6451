"""The parts that the web dashboard's pages are made of. The pages are HTML under {base}/app/, outside the API's routes.

Pages read their numbers from the same Answers as the API. They identify a browser by its cookie, which the API never
reads, and never read the Authorization header. The room `app` joins all pages. The modules `page_context` (in access)
and `context` (in dashboard) contain the parts that pages share, and import no page.
"""
