"use strict";
// What the page can do beyond being read: themes, sorting and filtering of tables, exact values at the pointer
// and by keyboard, saving charts and their numbers, choosing rows of grouped charts, and links that keep all
// of that. Texts are only ever set as text. Without this script nothing is missing from the page but comfort.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, properties = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in element) element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };

  // State in the fragment: #cases.sort=4d&filter=sqlite&theme=dark&at=heading-2
  const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const keep = (name, value) => {
    if (value) state.set(name, value);
    else state.delete(name);
    const text = state.toString();
    history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
  };

  // Theme: as the system has it, light, dark.
  const themes = ["", "light", "dark"];
  const themeButton = make("button", { type: "button", id: "theme" });
  const setTheme = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    themeButton.textContent = "Theme: " + (theme || "system");
  };
  const known = themes.includes(state.get("theme")) ? state.get("theme") : "";
  setTheme(known);
  themeButton.addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "") + 1) % themes.length];
    setTheme(next);
    keep("theme", next);
  });
  const openButton = make("button", { type: "button", id: "open-all", textContent: "Open all" });
  openButton.addEventListener("click", () => {
    const open = openButton.textContent === "Open all";
    all("details.part").forEach((part) => { part.open = open; });
    openButton.textContent = open ? "Close all" : "Open all";
  });
  const pageTools = make("div", { className: "page-tools" }, themeButton);
  if (document.querySelector("details.part")) pageTools.append(openButton);
  document.body.prepend(pageTools);

  // Tables.
  const said = make("div", { className: "unseen", role: "status" });
  document.body.append(said);
  const valueOf = (cell) => {
    if (!cell) return "";
    const exact = cell.dataset.v;
    const text = exact !== undefined ? exact : cell.textContent.trim();
    const number = Number(text.replace(/[,%~=]/g, "").replace(/ .*/, ""));
    return text !== "" && text !== "-" && Number.isFinite(number) ? number : text;
  };
  const sortTable = (table, column, descending) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, value: valueOf(row.cells[column]) }));
    // Numbers before texts, what is missing last, in either direction.
    const rank = (value) => (typeof value === "number" ? 0 : value === "" || value === "-" ? 2 : 1);
    rows.sort((one, other) => {
      const ranks = rank(one.value) - rank(other.value);
      if (ranks) return ranks;
      const order = typeof one.value === "number" ? one.value - other.value : String(one.value).localeCompare(String(other.value));
      return descending ? -order : order;
    });
    rows.forEach(({ row }) => body.append(row));
    [...table.tHead.rows[0].cells].forEach((head, index) => {
      if (index === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    keep(table.id + ".sort", column + (descending ? "d" : "a"));
  };
  all("table.sortable").forEach((table) => {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortTable(table, column, head.getAttribute("aria-sort") === "ascending"));
    });
    const kept = /^(\d+)([ad])$/.exec(state.get(table.id + ".sort") || "");
    if (kept && Number(kept[1]) < table.tHead.rows[0].cells.length) sortTable(table, Number(kept[1]), kept[2] === "d");
  });
  all("table.filterable").forEach((table) => {
    const input = make("input", { type: "search", placeholder: "words that a case must have", id: table.id + "-filter" });
    const count = make("span", { className: "none" });
    // The first table's is short, for links that were given away.
    const key = table.id === "cases" ? "filter" : table.id + ".filter";
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      [...table.tBodies[0].rows].forEach((row) => {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = shown + " of " + table.tBodies[0].rows.length + " cases";
      keep(key, input.value);
    };
    input.value = state.get(key) || "";
    input.addEventListener("input", () => { apply(); said.textContent = count.textContent; });
    const label = make("label", {}, "Filter ", input);
    const save = make("button", { type: "button", textContent: "Save as CSV" });
    save.addEventListener("click", () => download(table.id + ".csv", "text/csv", csv(table)));
    table.parentElement.before(make("div", { className: "filter" }, label, count, save));
    apply();
  });

  // Saving.
  const download = (name, type, text) => {
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const quote = (text) => {
    const number = text !== "" && Number.isFinite(Number(text));
    const safe = !number && /^[=+\-@]/.test(text) && text !== "-" ? "'" + text : text;
    return /[",\n\r]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
  };
  const csv = (table) => {
    const rows = [...table.rows].filter((row) => !row.hidden);
    const spread = [...table.tHead.rows[0].cells].map((_, column) =>
      rows.some((row) => row.cells[column] && row.cells[column].dataset.low !== undefined));
    const line = (row) => [...row.cells].flatMap((cell, column) => {
      const head = cell.parentElement.parentElement === table.tHead;
      const shown = cell.innerText.trim().replace(/\s+/g, " ");
      // Numbers without the commas that are there for the eye.
      const bare = /^\d{1,3}(,\d{3})+(\.\d+)?$/.test(shown) ? shown.replace(/,/g, "") : shown;
      const text = cell.dataset.v !== undefined ? cell.dataset.v : bare;
      if (!spread[column]) return [text];
      return head ? [text, text + " low", text + " high"] : [text, cell.dataset.low || "", cell.dataset.high || ""];
    });
    return rows.map((row) => line(row).map(quote).join(",") + "\r\n").join("");
  };
  const svgText = (svg) => {
    const copy = svg.cloneNode(true);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ");
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.setAttribute("class", "chart file");
    const computed = getComputedStyle(document.documentElement);
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    const text = document.getElementById("page-style").textContent;
    // The chart's own rules, in the colours that are shown now.
    const rules = text.split("\n").filter((rule) => /^(svg)?\.c/.test(rule)).join("\n");
    const colors = [...new Set(text.match(/--[a-z0-9-]+(?=:)/g))].map((name) => name + ":" + computed.getPropertyValue(name));
    style.textContent = ":root{" + colors.join(";") + "}\n" + rules + "\n[hidden]{display:none}";
    copy.prepend(style);
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of [["class", "paper"], ["width", "100%"], ["height", "100%"]]) paper.setAttribute(name, value);
    style.after(paper);
    return new XMLSerializer().serializeToString(copy);
  };

  // Charts: exact values at the pointer, and by arrow keys.
  const tip = make("div", { className: "tip", hidden: true, role: "tooltip", id: "tip" });
  document.body.append(tip);
  const words = new WeakMap();
  let chosen = null;
  const hide = () => {
    tip.hidden = true;
    if (chosen) chosen.classList.remove("chosen");
    chosen = null;
  };
  const show = (mark, x, y) => {
    if (chosen !== mark) {
      hide();
      chosen = mark;
      mark.classList.add("chosen");
      tip.textContent = words.get(mark);
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18) + "px";
  };
  all(".drawing > svg.chart").forEach((svg) => {
    const marks = all(".mark", svg);
    marks.forEach((mark) => {
      const own = mark.querySelector(":scope > title");
      const name = mark.parentElement.closest(".named")?.querySelector(":scope > title");
      const label = mark.classList.contains("row") ? mark.querySelector(":scope > text") : name;
      // A name that was cut off stands beside it.
      const called = mark.dataset.name || (label ? label.textContent : "");
      if (own) words.set(mark, (called ? called + ", " : "") + own.textContent);
    });
    // Two boxes with the same words would lie over one another.
    all(".mark > title, .named > title", svg).forEach((title) => title.remove());
    svg.addEventListener("pointermove", (event) => {
      const mark = event.target.closest(".mark");
      if (mark && words.has(mark)) show(mark, event.clientX, event.clientY);
      else hide();
    });
    svg.addEventListener("pointerleave", hide);
    if (!marks.length) return;
    svg.setAttribute("tabindex", "0");
    let at = -1;
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      const shown = marks.filter((mark) => !mark.hasAttribute("hidden"));
      at = Math.max(0, Math.min(shown.length - 1, at + step));
      const box = shown[at].getBoundingClientRect();
      show(shown[at], box.left + box.width / 3, box.top + box.height / 2);
      said.textContent = words.get(shown[at]);
    });
    svg.addEventListener("blur", hide);
  });
  addEventListener("scroll", hide, { passive: true });
  all("figure").forEach((figure) => {
    const shown = () => all(".drawing > svg.chart", figure).find((svg) => svg.getBoundingClientRect().width > 0);
    const name = figure.dataset.name;
    const tools = make("div", { className: "tools" });
    const svg = make("button", { type: "button", textContent: "Save as SVG" });
    svg.addEventListener("click", () => { if (shown()) download(name + ".svg", "image/svg+xml", svgText(shown())); });
    tools.append(svg);
    const table = document.getElementById(figure.dataset.table || "");
    if (table) {
      const numbers = make("button", { type: "button", textContent: "Numbers as CSV" });
      numbers.addEventListener("click", () => download(name + ".csv", "text/csv", csv(table)));
      tools.append(numbers);
    }
    figure.append(tools);
  });

  // Grouped charts: rows are chosen by what they are tagged with, and the gaps closed.
  const choices = document.getElementById("choices");
  const tagsOf = (element) => new Map((element.dataset.tags || "").split(" ").filter(Boolean).map((tag) => tag.split("=")));
  const applyChoices = () => {
    const off = new Map();
    all("#choices input").forEach((input) => {
      if (!input.checked) off.set(input.name, (off.get(input.name) || new Set()).add(input.value));
    });
    const isOff = (tags) => [...off].some(([name, values]) => values.has(tags.get(name)));
    all(".drawing > svg.chart").forEach((svg) => {
      const rows = all(".row", svg);
      if (!rows.some((row) => row.dataset.tags)) return;
      rows.forEach((row) => row.toggleAttribute("hidden", isOff(tagsOf(row))));
      // A heading without rows says nothing.
      rows.forEach((row, index) => {
        if (!row.classList.contains("heading")) return;
        const next = rows.slice(index + 1);
        const end = next.findIndex((other) => other.classList.contains("heading"));
        const own = end < 0 ? next : next.slice(0, end);
        row.toggleAttribute("hidden", !own.some((other) => !other.hasAttribute("hidden")));
      });
      if (!svg.dataset.top) svg.dataset.top = /0 ([\d.]+)/.exec(rows[0].getAttribute("transform"))[1];
      let top = Number(svg.dataset.top);
      rows.forEach((row) => {
        row.style.display = row.hasAttribute("hidden") ? "none" : "";
        if (row.hasAttribute("hidden")) return;
        row.setAttribute("transform", "translate(0 " + top + ")");
        top += Number(row.dataset.height);
      });
      svg.setAttribute("viewBox", svg.getAttribute("viewBox").replace(/[\d.]+$/, String(top + 4)));
    });
    all("[data-tags]:not(svg *)").forEach((element) => { element.hidden = isOff(tagsOf(element)); });
    off.forEach((values, name) => keep("without." + name, [...values].join(",")));
    for (const name of new Set(all("#choices input").map((input) => input.name))) if (!off.has(name)) keep("without." + name, "");
  };
  if (choices) {
    choices.hidden = false;
    all("#choices input").forEach((input) => {
      input.checked = !(state.get("without." + input.name) || "").split(",").includes(input.value);
      input.addEventListener("change", applyChoices);
    });
    applyChoices();
  }

  // Links to a place keep what has been chosen; what they lead to is opened.
  const reveal = (id) => {
    const target = id && document.getElementById(id);
    if (!target) return;
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    target.scrollIntoView();
  };
  all("h2[id]").forEach((heading) => {
    const link = make("a", { href: "#" + heading.id, textContent: "#", className: "none link", title: "Link to this section" });
    link.setAttribute("aria-label", "Link to this section");
    link.addEventListener("click", (event) => {
      event.preventDefault();
      keep("at", heading.id);
      reveal(heading.id);
    });
    heading.append(" ", link);
  });
  reveal(state.get("at") || location.hash.slice(1));
})();
