// Extras of the dashboard. Every page is complete without this file: it adds a tooltip to charts,
// sorting and search to tables, the choice of colours, copy buttons and keyboard shortcuts. Elements are made one by
// one, never from text, as Trusted Types require.

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

/** A choice kept in this browser; in a browser that stores nothing, the fallback. */
const kept = {
  get: (name, fallback) => { try { return localStorage.getItem(name) ?? fallback; } catch { return fallback; } },
  set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* private window */ } },
};

function say(text) {
  document.querySelector(".toast")?.remove();
  const toast = element("div", { className: "toast", role: "status" });
  document.body.append(toast);
  toast.textContent = text; // once it is in the page, so that screen readers read it
  setTimeout(() => toast.remove(), 2500);
}

// Colours
const showTheme = (theme) => {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const button of all("[data-theme-choice]")) button.setAttribute("aria-pressed", button.dataset.themeChoice === theme);
};
showTheme(kept.get("theme", "system"));
for (const button of all("[data-theme-choice]")) {
  button.addEventListener("click", () => {
    kept.set("theme", button.dataset.themeChoice);
    showTheme(button.dataset.themeChoice);
  });
}
for (const tools of all(".tools")) tools.hidden = false;

// Copy buttons: over plain http, browsers refuse the clipboard, so the text is selected instead
for (const button of all("[data-copy]")) {
  const code = button.parentElement.querySelector("code");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      say("Copied");
    } catch {
      getSelection().selectAllChildren(code);
      say("Selected: press Ctrl+C to copy");
    }
  });
}

// Sorting: numbers from <data value>, everything else as text; new rows have the largest change. "(other)" stays last,
// after rows without a value
const valueOf = (row, column) => {
  const data = row.cells[column].querySelector("data");
  const text = data ? data.value : row.cells[column].textContent.trim();
  return data && text && !isNaN(text) ? Number(text) : text;
};
const compare = (a, b) => (a === b ? 0 : typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
for (const table of all("table.rows:not(:has(thead a))")) { // others are sorted by the server
  for (const head of all("thead th", table)) {
    if (!head.textContent.trim()) continue;
    const button = element("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const body = table.tBodies[0];
      const rows = [...body.rows];
      const isNumber = rows.some((row) => typeof valueOf(row, head.cellIndex) === "number");
      const before = head.getAttribute("aria-sort");
      const order = before ? (before === "ascending" ? "descending" : "ascending") : isNumber ? "descending" : "ascending";
      for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const last = (row) => (row.classList.contains("rest") ? 2 : valueOf(row, head.cellIndex) === "" ? 1 : 0);
      body.append(...rows.sort((a, b) => last(a) - last(b) || sign * compare(valueOf(a, head.cellIndex), valueOf(b, head.cellIndex))));
    });
  }
}

// Search in a table
for (const input of all("[data-search]")) {
  const table = document.querySelector(`table[data-entry="${CSS.escape(input.dataset.search)}"]`);
  input.closest(".search").hidden = !table;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}

// Crosshair and tooltip: the numbers that are drawn, from the table in the same panel, one row for each column of the chart
for (const chart of all(".chart[data-chart]")) {
  const svg = chart.querySelector("svg[data-count]");
  const table = chart.closest(".panel")?.querySelector("table.rows");
  if (!svg || !table) continue;
  const rows = [...table.tBodies[0].rows]; // in their original order, however the table is sorted later
  const drawn = [...table.tHead.rows[0].cells].filter((cell) => "drawn" in cell.dataset);
  const crosshair = element("div", { className: "crosshair", hidden: true });
  const tip = element("div", { className: "tip", hidden: true });
  chart.append(crosshair, tip);
  let shown = -1;
  const columnAt = (event) => {
    const box = svg.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * rows.length);
    return event.clientX < box.left || column >= rows.length ? -1 : column;
  };
  const show = (column) => {
    crosshair.hidden = tip.hidden = column < 0;
    if (column < 0 || column === shown) return void (shown = column);
    shown = column;
    const cells = [...rows[column].cells].map((cell) => cell.textContent.trim());
    tip.replaceChildren(element("strong", {}, cells[0]));
    for (const head of drawn) tip.append(element("span", {}, head.textContent.trim()), element("b", {}, cells[head.cellIndex]));
    const width = svg.clientWidth || svg.getBoundingClientRect().width;
    const left = chart.clientWidth - width;
    const middle = left + (width * (column + 0.5)) / rows.length;
    crosshair.style.left = `${left + (width * column) / rows.length}px`;
    crosshair.style.width = `${width / rows.length}px`;
    const isRight = middle > chart.clientWidth / 2;
    tip.style.left = `${Math.max(isRight ? middle - tip.offsetWidth - 16 : middle + 16, 0)}px`;
  };
  chart.addEventListener("pointermove", (event) => show(columnAt(event)));
  chart.addEventListener("pointerdown", (event) => show(columnAt(event)));
  chart.addEventListener("pointerleave", () => show(-1));
  const linkAt = (event) => rows[columnAt(event)]?.querySelector("a[href]");
  if (rows.some((row) => row.querySelector("a[href]"))) svg.style.cursor = "pointer";
  svg.addEventListener("click", (event) => event.pointerType !== "touch" && linkAt(event)?.click());
}

// The map: pointing at or touching a country shows its visits
for (const map of all(".chart > .map")) {
  const tip = element("div", { className: "tip", hidden: true });
  map.parentElement.append(tip);
  const show = (event) => {
    const title = event.target.closest("[class^=q]");
    if (title?.firstElementChild) {
      title.dataset.title = title.textContent;
      title.replaceChildren(); // instead of the browser's own tooltip, which comes late, and never on touch
    }
    tip.hidden = !title;
    if (!title) return;
    tip.textContent = title.dataset.title;
    const box = map.parentElement.getBoundingClientRect();
    tip.style.left = `${Math.min(Math.max(event.clientX - box.left + 12, 0), box.width - tip.offsetWidth)}px`;
    tip.style.top = `${event.clientY - box.top + 16}px`;
  };
  map.addEventListener("pointermove", show);
  map.addEventListener("pointerdown", show);
  map.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") tip.hidden = true; });
}

// The page of the last 30 minutes reloads at intervals while it is visible, until it is paused
for (const button of all("[data-follow]")) {
  const follow = () => !document.hidden && kept.get("follow", "on") === "on" && location.reload();
  const show = () => { button.textContent = kept.get("follow", "on") === "on" ? "Pause" : "Follow"; };
  button.hidden = false;
  show();
  button.addEventListener("click", () => {
    kept.set("follow", kept.get("follow", "on") === "on" ? "off" : "on");
    show();
  });
  setInterval(follow, 1000 * button.dataset.follow);
}

// Shortcuts: a switch in the help turns single-key shortcuts off
const help = document.querySelector("#help");
const areOn = document.querySelector("#shortcuts");
const actions = new Map(all("[data-key]").map((target) => [target.dataset.key, target]));
for (const button of all("[data-help]")) button.addEventListener("click", () => help?.showModal());
if (areOn) {
  areOn.checked = kept.get("shortcuts", "on") === "on";
  areOn.addEventListener("change", () => kept.set("shortcuts", areOn.checked ? "on" : "off"));
}
const follow = (target) => (target.matches("input, select") ? target.focus() : target.click());
let first = "";
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping || help?.open || !areOn?.checked) return;
  const key = first ? `${first} ${event.key}` : event.key;
  first = !first && event.key === "g" ? "g" : "";
  const scrolls = event.key.startsWith("Arrow") && event.target.closest?.(".scroll");
  const target = key === "Escape" ? document.querySelector("[data-clear-all]") ?? document.querySelector("[data-clear]") : actions.get(key);
  if (key === "?" && help) help.showModal();
  else if (key === "p") print();
  else if (target && !scrolls) follow(target);
  else return;
  event.preventDefault();
});

// Open the tables of charts for printing, in browsers where the print style cannot
addEventListener("beforeprint", () => { for (const details of all(".data-table, .compared, .more-marks, .marks details")) details.open = true; });
