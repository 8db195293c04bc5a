"""What was run, and how to run it again."""

import json
import re

from tests.report.pages import Page


def test_the_configuration_can_be_copied_as_json(fit, page):
    block = re.findall(r"<pre[^>]*>(.*?)</pre>", page.source, re.S)[1]
    text = Page(f"<pre>{block}</pre>").text
    found = json.loads(text)
    assert found.pop("stopped") == "finished"
    assert found.pop("iteration") == 200
    assert found == fit.config
