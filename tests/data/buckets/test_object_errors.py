"""Messages for errors from a store: the cause and the remedy."""

from datetime import timedelta

import pytest

from data.buckets.object_errors import unavailable

METADATA = "Error performing PUT http://169.254.169.254/latest/api/token in 34 ms - HTTP error: error sending request"
SLOW = "HttpError { kind: Timeout, source: reqwest::Error { kind: Request"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (METADATA, "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (SLOW, "no response within 30 seconds"),
        (
            "status code: 404 Not Found: <Error><Code>NoSuchBucket</Code>",
            "404 Not Found, NoSuchBucket; the",
        ),
        (
            "status code: 403 Forbidden: <Error><Code>ExpiredToken</Code>",
            "403 Forbidden, ExpiredToken; check the keys in the AWS variables",
        ),
        ("status code: 500 Internal Server Error", "500 Internal Server Error."),
    ],
)
def test_an_object_store_error_is_reported_with_its_cause(error, words):
    problem = str(unavailable("s3://bucket/logs", "", error, timedelta(seconds=30)))
    assert problem.startswith(f"s3://bucket/logs cannot be used: {words}")
