// SPDX-License-Identifier: MIT
MathJax.Hub.Config({messageStyle: "none"});
