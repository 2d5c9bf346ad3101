// SPDX-License-Identifier: MIT
// Turns the pages of slides_N.html. Without this script all are there, one below the other.
'use strict';

const all = [...document.querySelectorAll('section')];
const keys = {
  ArrowRight: 1, ArrowDown: 1, PageDown: 1, ' ': 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1,
  Home: -all.length, End: all.length,
};

function show(place) {
  const at = Math.min(Math.max(place, 1), all.length);
  all.forEach((section, i) => section.classList.toggle('shown', i + 1 === at));
  document.querySelector('output').textContent = `${at} / ${all.length}`;
  history.replaceState(null, '', `#${at}`);
}

function here() {
  return all.findIndex((section) => section.classList.contains('shown')) + 1;
}

document.addEventListener('keydown', (event) => {
  if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  show(here() + keys[event.key]);
});
document.getElementById('back').addEventListener('click', () => show(here() - 1));
document.getElementById('on').addEventListener('click', () => show(here() + 1));
window.addEventListener('hashchange', () => show(Number(location.hash.slice(1)) || 1));
document.documentElement.classList.add('turning');
show(Number(location.hash.slice(1)) || 1);
