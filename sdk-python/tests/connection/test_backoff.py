"""The delays between attempts."""

from heeler._calls.backoff import FIRST, LONGEST, Backoff


def test_delays_double_up_to_the_longest() -> None:
    backoff = Backoff(None)
    delays = [backoff.after_failure(0, connected=True, jitter=0) for _ in range(10)]
    assert delays[:3] == [0.01, 0.02, 0.04]
    assert delays[-1] == LONGEST


def test_jitter_takes_away_at_most_half() -> None:
    assert Backoff(None).after_failure(0, connected=True, jitter=1) == FIRST / 2


def test_the_time_limit_counts_delays_and_attempts() -> None:
    backoff = Backoff(0.03)
    assert backoff.after_failure(0.01, connected=True, jitter=0) == FIRST
    assert backoff.after_failure(0.01, connected=True, jitter=0) is None


def test_a_long_call_begins_a_new_series() -> None:
    backoff = Backoff(0.03)
    while backoff.after_failure(0.01, connected=True, jitter=0) is not None:
        pass
    assert backoff.after_failure(60, connected=True, jitter=0) == FIRST


def test_attempts_to_connect_count_however_long_they_take() -> None:
    backoff = Backoff(50)
    assert backoff.after_failure(20, connected=False, jitter=0) == FIRST
    assert backoff.after_failure(20, connected=False, jitter=0) == 2 * FIRST
    assert backoff.after_failure(20, connected=False, jitter=0) is None


def test_limited_delays_are_never_shorter_than_the_first() -> None:
    backoff = Backoff(None)
    backoff.limit_delay(0.015)
    assert [backoff.after_failure(0, connected=True, jitter=0) for _ in range(3)] == [
        FIRST,
        0.015,
        0.015,
    ]
    backoff.limit_delay(0)
    assert backoff.after_failure(0, connected=True, jitter=0) == FIRST


def test_a_time_limit_of_zero_means_one_attempt() -> None:
    assert Backoff(0).after_failure(0, connected=True) is None
