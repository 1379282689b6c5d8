"""What the documents say is true: excerpts are lines of the files they name, links and paths lead somewhere."""

import re

import pytest


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("language", ["python", "cpp", "c"])
def test_excerpts_in_the_readme_are_lines_of_the_example(root, language):
    (block,) = blocks((root / "README.md").read_text(), language)
    head, *lines = block.splitlines()
    name = re.search(r"simple-shift[-a-z]*\.\w+", head)[0]
    there = (root / "examples" / "01-simple-shift" / name).read_text().splitlines()
    assert lines and [line for line in lines if line not in there] == []


def test_commands_in_documents_have_options_that_exist(root, intarsia):
    documents = [root / "README.md", *(root / "docs").glob("*.md")]
    text = "".join(path.read_text() for path in documents if path.name != "command-line.md")
    for command, rest in re.findall(r"\bintarsia (cc|link|sim|run|inspect|check|fmt|cache) ([^\n`]*)", text):
        known = intarsia("help", command).out
        for option in re.findall(r"(?<=\s)--[a-z-]+", " " + rest.split(" | ")[0]):
            assert option in known, f"intarsia {command} {option}"


def test_links_and_paths_lead_somewhere(root):
    for document in [root / "README.md", *(root / "docs").glob("*.md")]:
        text = document.read_text()
        prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#]+)\)", prose):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
        for path in re.findall(r"`((?:src|tests|tools|docs|examples|device|include|python)/[\w./-]+)`", text):
            if not re.search(r"NAME|PART|TARGET", path):
                assert (root / path).exists(), f"{document.name}: {path}"


def test_every_wheel_is_listed_with_its_version(root):
    text = (root / "docs" / "dependencies.md").read_text()
    for requirements in (root / "tools").glob("requirements*.txt"):
        for name, version in re.findall(r"^([\w-]+)==(\S+)", requirements.read_text(), re.M):
            if requirements.name != "requirements-test.txt" or name in ("pytest", "ruff", "mypy"):
                assert f"{name}" in text and version in text, name


def test_every_debian_package_is_listed(root):
    text = (root / "docs" / "dependencies.md").read_text()
    setup = (root / "tools" / "setup.py").read_text()
    packages = re.findall(r'^    \("(?:build|run|test)", "([\w+-]+)", ', setup, re.M)
    assert len(packages) > 10
    for package in packages:
        assert f"`{package}`" in text, package


def test_make_help_lists_every_target_of_the_readme(root):
    makefile = (root / "Makefile").read_text()
    for target in re.findall(r"`?make ([a-z-]+)", (root / "README.md").read_text()):
        assert re.search(rf"^{target}:.*## ", makefile, re.M), target
