"use strict";
{
  const form = document.getElementById("search"), query = document.getElementById("query"), found = document.getElementById("found");
  const most = 10000;
  let hits = [], at = -1, words = "";
  const chunks = [...document.querySelectorAll(".output pre > *")].map((e) => e.firstChild).filter(Boolean);
  const find = () => {
    words = query.value;
    hits = [];
    at = -1;
    if (!words) return;
    const pattern = new RegExp(words.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "gi");
    for (const node of chunks) {
      for (const m of node.data.matchAll(pattern)) {
        hits.push([node, m.index, m.index + m[0].length]);
        if (hits.length === most) return;
      }
    }
  };
  const show = (step) => {
    if (query.value !== words) find();
    if (globalThis.CSS && CSS.highlights) CSS.highlights.delete("found");
    if (!hits.length) {
      found.value = words ? "nothing found" : "";
      return;
    }
    at = (at + step + hits.length) % hits.length;
    const [node, start, end] = hits[at];
    const range = new Range();
    range.setStart(node, start);
    range.setEnd(node, end);
    for (let d = node.parentElement.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
    if (globalThis.CSS && CSS.highlights) CSS.highlights.set("found", new Highlight(range));
    node.parentElement.scrollIntoView();
    const top = range.getBoundingClientRect().top;
    scrollBy(0, top - innerHeight / 3);
    found.value = `${at + 1} of ${hits.length}${hits.length === most ? " or more" : ""}`;
  };
  form.hidden = false;
  form.addEventListener("submit", (e) => { e.preventDefault(); show(1); });
  document.getElementById("previous").addEventListener("click", () => show(at < 0 ? 0 : -1));
}
