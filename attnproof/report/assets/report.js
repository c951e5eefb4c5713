// Search and filters on the index, folding by depth, copying. Every page is whole without it.
"use strict";

const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
for (const part of all("form.find, .depths, button[data-copy]")) part.hidden = false;

const find = document.querySelector("form.find");
if (find) {
  const rows = all(".contents tbody tr[data-verdict]");
  const told = new Map(rows.map((row) => [row, `${row.textContent} ${row.dataset.subject} ${row.dataset.more}`.toLowerCase()]));
  const show = () => {
    const asked = new FormData(find);
    const words = asked.get("words").toLowerCase().split(/\s+/).filter(Boolean);
    const [subject, verdict, kind] = ["subject", "verdict", "kind"].map((name) => asked.get(name));
    let count = 0;
    for (const row of rows) {
      const wanted =
        words.every((word) => told.get(row).includes(word)) &&
        (!subject || row.dataset.subject === subject) &&
        (!verdict || (verdict === "!" ? row.classList.contains("bad") : row.dataset.verdict === verdict)) &&
        (!kind || row.dataset.kinds.split(" ").includes(kind));
      row.hidden = !wanted;
      count += wanted;
    }
    for (const group of all(".contents tbody"))
      group.hidden = !all("tr[data-verdict]", group).some((row) => !row.hidden);
    find.querySelector("output").textContent = `${count} of ${rows.length}`;
  };
  find.addEventListener("input", show);
  find.addEventListener("submit", (event) => event.preventDefault());
  show(); // a browser may have kept what was typed
}

for (const button of all("[data-depth]"))
  button.addEventListener("click", () => {
    const proof = button.closest(".proof");
    const depth = Number(button.dataset.depth);
    for (const part of all("details.rewriting", proof)) part.open = depth > 0;
    for (const part of all("details.kernel", proof)) part.open = depth > 1;
  });

for (const button of all("[data-copy]"))
  button.addEventListener("click", async () => {
    const text = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const field = document.body.appendChild(document.createElement("textarea"));
      field.value = text;
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });

let opened = [];
addEventListener("beforeprint", () => {
  opened = all("details:not([open]):not(.kernel)");
  for (const part of opened) part.open = true;
});
addEventListener("afterprint", () => {
  for (const part of opened) part.open = false;
});
