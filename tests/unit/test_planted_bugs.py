"""The bugs of planted_bugs.toml can be planted in the code as it is."""

from __future__ import annotations

import pytest

from tests.mutation_check import MUTATIONS, ROOT, Mutation, all_tests


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_its_line_stands_once_in_its_file(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.right) == 1
    assert mutation.right != mutation.wrong
    for test in mutation.found_by.split():
        assert (ROOT / test.split("::")[0]).exists() or not test.startswith("tests/"), test


def test_options_of_pytest_stay_with_their_files() -> None:
    given = ("tests/a.py tests/b.py", "tests/b.py", "tests/c.py -k x", "tests/c.py -k y", "d.cpp")
    bugs = [Mutation("bug", "file.py", "right", "wrong", found_by) for found_by in given]
    alone = ("tests/c.py -k x", "tests/c.py -k y", "d.cpp")
    assert all_tests(bugs) == ("tests/a.py tests/b.py", *alone)
    assert all_tests(bugs[-1:]) == ("d.cpp",)
