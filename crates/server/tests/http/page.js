// Runs the script of the query page over a document that only knows what the script asks of it,
// and prints what the page then says: `node page.js PAGE SERVER QUERY`.
"use strict";
const [page, server, query] = process.argv.slice(2);
const script = require("fs").readFileSync(page, "utf8").split("<script>")[1].split("</script>")[0];

function element() {
  const made = { children: [], value: "", textContent: "", className: "" };
  const add = () => { const child = element(); made.children.push(child); return child; };
  made.append = (...more) => { made.children.push(...more); };
  made.replaceChildren = (...more) => { made.children = more; };
  made.createTHead = made.createTBody = made.insertRow = made.insertCell = add;
  made.focus = made.setSelectionRange = () => {};
  return made;
}

const elements = {};
const document = {
  getElementById: id => elements[id] ??= element(),
  createElement: element,
};
const run = new Function("document", "fetch", script + "\nreturn run;")(
  document, (path, options) => fetch(server + path, options));
document.getElementById("query").value = query;
run().then(() => {
  const table = elements.result.children[0];
  const rows = table ? table.children[1].children : [];
  const text = row => row ? row.children[0].textContent : "";
  console.log([elements.status.textContent.split(" · ")[0], rows.length, text(rows[0]),
    text(rows[rows.length - 1])].join("\n"));
});
