"""From the page AI by clicks to the redirect of a made-up link."""


def test_two_clicks_from_the_page_ai_claim_an_address_that_was_made_up_where_it_gets_its_redirect(opened, axe):
    watched = opened()
    page = watched.goto("ai")
    page.get_by_role("link", name="Invented links").click()
    page.get_by_role("button", name="/pricing-2026").click()
    page.wait_for_url("**/app/jobs/job_*#implementation")
    field = page.get_by_label("Redirect to")
    assert field.evaluate(
        "one => { const at = one.getBoundingClientRect(); return 0 < at.top && at.top < innerHeight; }"
    )
    assert axe(page) == []
    assert watched.goto("invented-links").get_by_role("link", name="approved").count() == 1
    assert watched.problems == []
