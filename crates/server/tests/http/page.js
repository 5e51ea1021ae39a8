// Runs the script of the query page over a document that only knows what the script asks of it,
// and prints what the page then says: `node page.js PAGE SERVER QUERY FORM`. At the end the page is
// opened again, as a reload does.
"use strict";
const [page, server, query, form] = process.argv.slice(2);
const script = require("fs").readFileSync(page, "utf8").split("<script>")[1].split("</script>")[0];

function element() {
  const made = { children: [], value: "", textContent: "", className: "" };
  const add = () => { const child = element(); made.children.push(child); return child; };
  made.append = (...more) => { made.children.push(...more); };
  made.replaceChildren = (...more) => { made.children = more; };
  made.createTHead = made.createTBody = made.insertRow = made.insertCell = add;
  made.focus = () => {};
  made.setSelectionRange = (begin, end) => { made.selected = made.value.slice(begin, end); };
  return made;
}

const location = { hash: "" };
const history = { replaceState: (state, title, url) => { location.hash = url; } };
let elements;
function open() {
  elements = {};
  const document = {
    getElementById: id => elements[id] ??= element(),
    createElement: element,
  };
  const fetched = (path, options) => fetch(server + path, options);
  const names = ["document", "fetch", "location", "history", "window"];
  const page = new Function(...names, script + "\nreturn run;");
  return page(document, fetched, location, history, {});
}

const run = open();
elements.query.value = query;
(elements["form-of-result"] ??= element()).value = form;
run().then(() => {
  const { query, result, status } = elements;
  const table = result.children[0];
  const rows = table?.children[1]?.children ?? [];
  const shown = cell => cell.textContent || cell.children.map(child => child.textContent).join("");
  const whole = cell => cell.title ? ` = ${cell.title}` : "";
  const text = row => row ? shown(row.children[0]) + whole(row.children[0]) : "";
  const said = [status.textContent.split(" · ")[0], rows.length, text(rows[0]),
    text(rows[rows.length - 1]), query.selected ?? ""];
  open();
  console.log([...said, elements.query.value].join("\n"));
});
