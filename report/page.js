"use strict";
// Everything below adds to a page that is whole without it.
const make = (name, props, ...inside) => {
  const e = Object.assign(document.createElement(name), props);
  e.append(...inside);
  return e;
};

// Tables: a heading sorts, and a long table has a field that filters.
const number = text => {
  const found = text.replace(/[\u202f\u00a0]/g, "").replace(/\u2212/g, "-").match(/-?\d+(\.\d+)?(e-?\d+)?/);
  return found ? parseFloat(found[0]) : NaN;
};
for (const table of document.querySelectorAll("main table")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  if (rows.length < 3) continue;
  heads.forEach((head, j) => {
    const button = make("button", {type: "button", className: "sort"}, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(h => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = row => {
        const text = row.cells[j].textContent;
        return head.classList.contains("number") ? number(text) : text;
      };
      const order = (a, b) => {
        if (typeof a === "string") return a.localeCompare(b, undefined, {numeric: true});
        return isNaN(a) || isNaN(b) ? 0 : a - b;
      };
      body.append(...rows.map((row, i) => [key(row), i, row]).sort((a, b) => {
        const none = Number.isNaN(a[0]) - Number.isNaN(b[0]); // what is not available comes last
        return none || (up ? 1 : -1) * order(a[0], b[0]) || a[1] - b[1];
      }).map(x => x[2]));
    });
  });
  if (rows.length < 12) continue;
  const field = make("input", {type: "search"});
  const count = make("output");
  field.addEventListener("input", () => {
    const want = field.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(want);
      shown += !row.hidden;
    }
    count.value = want ? shown + " of " + rows.length + " rows" : "";
  });
  table.closest(".scroll").before(make("p", {className: "tools"}, make("label", {}, "Show rows with ", field), " ", count));
}

// Pictures that are alternatives: one at a time, chosen above them.
for (const first of document.querySelectorAll("figure[data-choice]")) {
  const name = first.dataset.choice;
  if (first.previousElementSibling && first.previousElementSibling.dataset.choice === name) continue;
  const all = [];
  for (let e = first; e && e.dataset.choice === name; e = e.nextElementSibling) all.push(e);
  if (all.length < 2) continue;
  const select = make("select", {}, ...all.map((f, i) => make("option", {value: i}, f.querySelector("h3").textContent)), make("option", {value: -1}, "all of them"));
  const show = () => all.forEach((f, i) => f.classList.toggle("unchosen", select.value >= 0 && select.value != i));
  select.addEventListener("change", show);
  first.before(make("p", {className: "tools"}, make("label", {}, name + " ", select)));
  show();
}

// Values: what a mark stands for, below its picture when it is touched or pointed at.
for (const figure of document.querySelectorAll("figure:not(.table)")) {
  const line = make("p", {className: "value"});
  line.setAttribute("aria-live", "polite");
  figure.querySelector("figcaption").before(line);
  const tell = event => {
    const mark = event.target.closest("svg *"), title = mark && mark.querySelector(":scope > title");
    if (title && mark.parentNode.nodeName !== "DIV") line.textContent = title.textContent;
  };
  figure.addEventListener("pointerover", tell);
  figure.addEventListener("click", tell);
}

// What is folded has to be open to be printed, or to be reached by a link.
const folded = document.querySelectorAll("details.more");
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...folded].filter(d => !d.open);
  closed.forEach(d => d.open = true);
});
addEventListener("afterprint", () => closed.forEach(d => d.open = false));
const reach = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  const figure = target.closest("figure");
  if (figure) figure.classList.remove("unchosen");
  for (let d = target.closest("details"); d; d = d.parentNode.closest("details")) d.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", reach);
reach();
