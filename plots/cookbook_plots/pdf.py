# SPDX-License-Identifier: MIT
"""A page as a PDF, by whatever program is installed that prints one."""
import os
import shutil
import subprocess


def printed_by_browser(page, pdf, trusted):
    # A browser's own sandbox does not work for root, nor in many containers.
    plain = ["--no-sandbox"] if trusted or os.geteuid() == 0 else []
    return ["--headless", *plain, "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={pdf}", page.resolve().as_uri()]


TOOLS = {  # program: its arguments for a page and a PDF
    **dict.fromkeys(("chromium", "chromium-browser", "google-chrome"), printed_by_browser),
    "weasyprint": lambda page, pdf, trusted: [str(page), str(pdf)],
    "wkhtmltopdf": lambda page, pdf, trusted: ["--quiet", str(page), str(pdf)],
}
NONE = "no PDF: no chromium, google-chrome, weasyprint or wkhtmltopdf here; a browser can print the page"


def write_pdf(page, pdf, trusted=True):
    """The program that wrote it, or None. Not `trusted`: the page holds what somebody else has made."""
    for name, arguments in TOOLS.items():
        if not shutil.which(name):
            continue
        try:
            done = subprocess.run([name, *arguments(page, pdf, trusted)], capture_output=True, timeout=120)
        except subprocess.TimeoutExpired:
            continue
        if done.returncode == 0 and pdf.exists():
            return name
    return None
