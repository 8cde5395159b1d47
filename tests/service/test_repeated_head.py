"""A head that comes again is not parsed again, and means the same as if it were."""

import pytest

from discreet.service.http.repeated_head import learned

HEAD = b"POST /v1/decide HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\nX: y\r\n\r\n"
ROUTE = (b"POST", b"/v1/decide")


def request(body, head=HEAD):
    return head % len(body) + body


def known():
    return learned(request(b"[1]"), 3, ROUTE, {b"x": b"y", b"content-length": b"3"}, old=False)


@pytest.mark.parametrize("body", [b"[1]", b"[1, 2, 3, 4, 5]", b""])
def test_a_body_of_any_length_is_found(body):
    assert known().body(request(body)) == body
    assert known().headers == {b"x": b"y"}


@pytest.mark.parametrize(
    "data",
    [
        request(b"[1]")[:-1],  # the rest is still to come
        request(b"[1]") + b"P",  # another request follows
        request(b"[1]").replace(b"X: y", b"X: z"),
        request(b"[1]").replace(b"X: y\r\n", b""),
        request(b"[1]").replace(b"POST", b"PUT"),
        request(b"[1]").replace(b": 3", b": +3"),
        request(b"[1]").replace(b": 3", b": 3 "),
        request(b"[1]").replace(b": 3", b": "),
        request(b"[1]").replace(b": 3\r\n", b": 3"),
        request(b"[1]").replace(b": 3", b": 000000000003"),
        b"",
    ],
)
def test_anything_else_goes_to_the_parser(data):
    assert known().body(data) is None


@pytest.mark.parametrize(
    "data",
    [
        request(b"[1]") + b"P",
        request(b"[1]").replace(b"Content-Length", b"Length"),
        request(b"[1]").replace(b": 3", b": 3 "),
        b"POST / HTTP/1.1\r\n\r\n\r\nContent-Length: 3\r\n[1]",
    ],
)
def test_only_one_whole_plain_request_is_learned(data):
    assert learned(data, 3, ROUTE, {}, old=False) is None
