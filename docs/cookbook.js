// SPDX-License-Identifier: MIT
// A link to a level opens the listings under it.
(function () {
  function openTarget() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    let node = target.closest("h1, h2, h3") || target.parentElement;
    for (node = node && node.nextElementSibling; node && !/^H[1-3]$/.test(node.tagName); node = node.nextElementSibling) {
      if (node.tagName === "DETAILS" && !node.querySelector("pre.report")) {
        node.open = true;
        break;
      }
    }
  }
  window.addEventListener("hashchange", openTarget);
  window.addEventListener("DOMContentLoaded", openTarget);
})();
