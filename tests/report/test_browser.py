"""The page in a real browser, where one is installed."""

import json
import re
import shutil
import subprocess

import pytest

from report import find, page
from tests.report import folders
from tests.report.test_page import NOW

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
# Shows the page in a frame of some width and writes what it measures there.
FRAME = """<!DOCTYPE html><title>frame</title><body><script>
const frame = document.createElement("iframe");
frame.width = WIDTH;
frame.height = 800;
frame.style.border = 0;
frame.onload = () => {
  const page = frame.contentDocument;
  const images = [...page.images];
  document.body.dataset.found = JSON.stringify({
    width: frame.contentWindow.innerWidth,
    room: page.documentElement.clientWidth,
    content: page.documentElement.scrollWidth,
    images: images.length,
    broken: images.filter(image => !image.naturalWidth).length,
    widest: Math.max(...images.map(image => image.offsetWidth)),
    scrolling: [...page.querySelectorAll(".scroll")].filter(
      box => box.scrollWidth > box.clientWidth).length,
  });
};
frame.srcdoc = SOURCE;
document.body.append(frame);
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
@pytest.mark.parametrize("width", [390, 1200])
def test_page_fits_the_window(tmp_path, width):
  folders.everything(tmp_path / "runs")
  source = page.build(tmp_path / "runs", find.find(tmp_path / "runs"), NOW)
  text = FRAME.replace("WIDTH", str(width))
  text = text.replace("SOURCE", json.dumps(source).replace("</", "<\\/"))
  (tmp_path / "frame.html").write_text(text)
  process = subprocess.run(
    [
      BROWSER,
      *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
      *("--no-first-run", "--disable-background-networking"),
      *("--disable-component-update", "--disable-sync", "--dump-dom"),
      *("--virtual-time-budget=10000", f"--user-data-dir={tmp_path}/profile"),
      (tmp_path / "frame.html").as_uri(),
    ],
    capture_output=True,
    text=True,
    timeout=300,
  )
  found = re.search('data-found="([^"]*)"', process.stdout)
  assert found, process.stderr
  found = json.loads(found.group(1).replace("&quot;", '"'))
  assert found["width"] == width
  assert found["content"] == found["room"]
  assert found["images"] > 10
  assert found["broken"] == 0
  assert found["widest"] <= found["room"]
  assert (found["scrolling"] > 0) == (width == 390)
