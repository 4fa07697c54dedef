"""A sixth face that only the tests know: it plugs in without a change to any module."""
