"""The list of long tests names tests, files and parameters, and no test falls out of both rounds."""

from rounds import is_long, long_tests, unknown

LISTED = ["beams/test_a.py", "lie/test_b.py::test_order", "lie/test_b.py::test_map[SE3-1]"]


def test_a_line_is_a_file_a_test_or_one_of_its_parameters():
    assert is_long("tests/beams/test_a.py::test_any[1]", LISTED)
    assert is_long("tests/lie/test_b.py::test_order[2]", LISTED)
    assert is_long("tests/lie/test_b.py::test_map[SE3-1]", LISTED)
    assert not is_long("tests/lie/test_b.py::test_map[SE3-10]", LISTED)
    assert not is_long("tests/lie/test_b.py::test_orders", LISTED)


def test_what_is_no_test_is_found():
    nodes = ["tests/beams/test_a.py::test_any", "tests/lie/test_b.py::test_order[1]"]
    assert unknown(nodes, LISTED) == ["lie/test_b.py::test_map[SE3-1]"]


def test_no_line_says_what_another_has_said():
    listed = long_tests()
    assert len(set(listed)) == len(listed)
    for line in listed:
        assert not is_long(line, [other for other in listed if other != line]), line
