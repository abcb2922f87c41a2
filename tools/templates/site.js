// The frame of the site: colours, menu, contents that follow the reading, links on headings, and search.
(() => {
  "use strict";

  const root = document.documentElement;
  const live = document.getElementById("live");

  // ---------- colours ----------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const choices = { auto: "as the system", light: "light", dark: "dark" };
  const themeButton = document.querySelector(".theme-button");

  function applyTheme(choice) {
    root.dataset.themeChoice = choice;
    root.dataset.theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
    themeButton.querySelector(".theme-label").textContent = `Colours: ${choices[choice]}`;
    themeButton.title = `Colours: ${choices[choice]}`;
  }

  themeButton.hidden = false;
  applyTheme(root.dataset.themeChoice in choices ? root.dataset.themeChoice : "auto");
  themeButton.addEventListener("click", () => {
    const names = Object.keys(choices);
    const next = names[(names.indexOf(root.dataset.themeChoice) + 1) % names.length];
    try {
      localStorage.setItem("dense-theme", next);
    } catch {
      // Where storage is forbidden the choice lasts for this page.
    }
    applyTheme(next);
    live.textContent = `Colours: ${choices[next]}`;
  });
  dark.addEventListener("change", () => applyTheme(root.dataset.themeChoice));

  // ---------- menu on small screens ----------

  const menuButton = document.querySelector(".menu-button");
  const sidebar = document.getElementById("sidebar");
  const layoutMain = document.getElementById("main");

  function setMenu(open) {
    document.body.classList.toggle("menu-open", open);
    menuButton.setAttribute("aria-expanded", String(open));
    layoutMain.inert = open;
    if (open) (sidebar.querySelector("[aria-current]") || sidebar.querySelector("a")).focus();
  }

  menuButton.hidden = false;
  menuButton.addEventListener("click", () => setMenu(!document.body.classList.contains("menu-open")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.body.classList.contains("menu-open")) {
      setMenu(false);
      menuButton.focus();
    }
  });
  document.addEventListener("click", (event) => {
    const outside = !event.target.closest("#sidebar, .menu-button");
    if (outside && document.body.classList.contains("menu-open")) setMenu(false);
  });
  matchMedia("(min-width: 62rem)").addEventListener("change", () => setMenu(false));
  const current = sidebar.querySelector("[aria-current]");
  // Not scrollIntoView: Chromium would let the first Tab start behind the element that it scrolls to.
  const hidden = current
    ? current.getBoundingClientRect().bottom - sidebar.getBoundingClientRect().bottom
    : 0;
  if (hidden > 0) sidebar.scrollTop += hidden + 16;

  // ---------- links on headings, and the place in the contents ----------

  const headings = [...document.querySelectorAll("main section[id] > :is(h2, h3, h4)")];
  for (const heading of headings) {
    const link = document.createElement("a");
    link.className = "heading-link";
    link.href = `#${heading.parentElement.id}`;
    link.textContent = "#";
    link.setAttribute("aria-label", `Link to “${heading.textContent}”`);
    heading.append(link);
  }

  const tocLinks = new Map(
    [...document.querySelectorAll("#toc a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]),
  );
  let currentLink = null;
  function followReading() {
    let found = null;
    for (const heading of headings) {
      if (heading.getBoundingClientRect().top > innerHeight * 0.3) break;
      found = tocLinks.get(heading.parentElement.id) || found;
    }
    if (found === currentLink) return;
    currentLink?.removeAttribute("aria-current");
    found?.setAttribute("aria-current", "location");
    currentLink = found;
  }
  if (tocLinks.size) {
    let waiting = false;
    addEventListener(
      "scroll",
      () => {
        if (waiting) return;
        waiting = true;
        requestAnimationFrame(() => {
          waiting = false;
          followReading();
        });
      },
      { passive: true },
    );
    followReading();
  }

  // ---------- a look at what a reference means, where there is a pointer that can hover ----------

  const PREVIEWED = "a.quarto-xref, a.footnote-ref, .citation a";
  const preview = document.createElement("div");
  let previewTimer = 0;
  let previewLink = null;
  preview.className = "preview";
  preview.setAttribute("aria-hidden", "true");
  preview.inert = true;
  preview.hidden = true;
  layoutMain.append(preview);

  // What a link on this page leads to, as a copy without ids; null for sections and other pages.
  function meaning(link) {
    const href = link.getAttribute("href");
    const target = href.startsWith("#") && document.getElementById(decodeURIComponent(href.slice(1)));
    if (!target || target.tagName === "SECTION" || target.tagName === "H1") return null;
    const copy = target.cloneNode(true);
    for (const part of copy.querySelectorAll(".footnote-back, .copy-button, .statement-link, .heading-link")) part.remove();
    for (const part of [copy, ...copy.querySelectorAll("[id]")]) part.removeAttribute("id");
    if (copy.tagName !== "LI") return [copy];
    return [...copy.childNodes];
  }

  function showPreview(link) {
    const content = meaning(link);
    if (!content) return;
    previewLink = link;
    preview.replaceChildren(...content);
    preview.hidden = false;
    const at = link.getBoundingClientRect();
    const box = preview.getBoundingClientRect();
    const left = Math.max(12, Math.min(at.left, root.clientWidth - box.width - 12));
    const below = at.bottom + 8 + box.height < innerHeight || at.top < box.height + 70;
    preview.style.left = `${left + scrollX}px`;
    preview.style.top = `${(below ? at.bottom + 8 : at.top - box.height - 8) + scrollY}px`;
  }

  function hidePreview() {
    clearTimeout(previewTimer);
    preview.hidden = true;
    previewLink = null;
  }

  if (matchMedia("(hover: hover)").matches) {
    layoutMain.addEventListener("pointerover", (event) => {
      const link = event.target.closest(PREVIEWED);
      if (link === previewLink) return;
      hidePreview();
      if (link) previewTimer = setTimeout(showPreview, 250, link);
    });
    layoutMain.addEventListener("pointerleave", hidePreview);
    document.addEventListener("click", hidePreview);
    document.addEventListener("keydown", hidePreview);
    addEventListener("scroll", () => preview.hidden || hidePreview(), { passive: true });
  }

  // ---------- search ----------

  const dialog = document.getElementById("search");
  const input = document.getElementById("search-input");
  const results = document.getElementById("search-results");
  const note = dialog.querySelector(".search-note");
  const searchButton = document.querySelector(".search-button");
  const LIMIT = 20;
  let index = null;
  let selected = -1;

  // Letters without accents and capitals; as long as the text, so that a place in one is a place in the other.
  const foldLetter = (letter) => (letter.length > 1 ? letter : letter.normalize("NFD")[0].toLowerCase()[0]);
  const fold = (text) => Array.from(text, foldLetter).join("");

  function loadIndex() {
    if (index) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${document.body.dataset.root}assets/search-index.js?${document.body.dataset.stamp}`;
      script.onload = () => {
        index = globalThis.denseSearchIndex.map(([page, title, href, text, weight]) => ({
          page,
          title,
          href,
          text,
          weight,
          foldedTitle: fold(`${title} ${title ? "" : page}`),
          foldedPage: fold(page),
          foldedText: fold(text),
        }));
        resolve();
      };
      script.onerror = reject;
      document.head.append(script);
    });
  }

  function count(text, word) {
    let found = 0;
    for (let at = text.indexOf(word); at >= 0 && found < 8; at = text.indexOf(word, at + word.length)) found += 1;
    return found;
  }

  // Every word must occur somewhere; a word in a title weighs most, a whole word more than a part of one.
  function score(entry, words) {
    let total = 0;
    for (const word of words) {
      const inTitle = count(entry.foldedTitle, word);
      const inText = count(entry.foldedText, word);
      const inPage = count(entry.foldedPage, word);
      if (!inTitle && !inText && !inPage) return 0;
      const whole = ` ${entry.foldedText} `.includes(` ${word} `) ? 2 : 0;
      total += inTitle * 12 + inPage * 2 + inText + whole;
    }
    return total * entry.weight;
  }

  function marked(text, words) {
    const fragment = document.createDocumentFragment();
    const folded = fold(text);
    let at = 0;
    while (at < text.length) {
      let start = -1;
      let length = 0;
      for (const word of words) {
        const found = folded.indexOf(word, at);
        if (found >= 0 && (start < 0 || found < start)) {
          start = found;
          length = word.length;
        }
      }
      if (start < 0) break;
      const mark = document.createElement("mark");
      mark.textContent = text.slice(start, start + length);
      fragment.append(text.slice(at, start), mark);
      at = start + length;
    }
    fragment.append(text.slice(at));
    return fragment;
  }

  function snippet(entry, words) {
    const places = words.map((word) => entry.foldedText.indexOf(word)).filter((place) => place >= 0);
    const middle = places.length ? Math.min(...places) : 0;
    let start = Math.max(0, middle - 50);
    if (start > 0) start = entry.text.indexOf(" ", start) + 1;
    const end = Math.min(entry.text.length, start + 220);
    return `${start > 0 ? "… " : ""}${entry.text.slice(start, end)}${end < entry.text.length ? " …" : ""}`;
  }

  function select(next) {
    const options = [...results.children];
    selected = options.length ? (next + options.length) % options.length : -1;
    options.forEach((option, place) => option.setAttribute("aria-selected", String(place === selected)));
    if (selected < 0) {
      input.removeAttribute("aria-activedescendant");
      return;
    }
    input.setAttribute("aria-activedescendant", options[selected].id);
    options[selected].scrollIntoView({ block: "nearest" });
  }

  function show() {
    const words = fold(input.value).split(/\s+/).filter(Boolean);
    const found = words.length
      ? index
          .map((entry) => [score(entry, words), entry])
          .filter(([points]) => points > 0)
          .sort((one, other) => other[0] - one[0])
      : [];
    results.replaceChildren(
      ...found.slice(0, LIMIT).map(([, entry], place) => {
        const option = document.createElement("a");
        option.id = `search-result-${place}`;
        option.href = document.body.dataset.root + entry.href;
        option.tabIndex = -1;
        option.setAttribute("role", "option");
        const where = document.createElement("span");
        where.className = "where";
        where.append(marked(entry.title || entry.page, words));
        if (entry.title) {
          const page = document.createElement("span");
          page.className = "page";
          page.textContent = ` · ${entry.page}`;
          where.append(page);
        }
        const text = document.createElement("span");
        text.className = "snippet";
        text.append(marked(snippet(entry, words), words));
        option.append(where, text);
        return option;
      }),
    );
    input.setAttribute("aria-expanded", String(found.length > 0));
    const counted = found.length === 1 ? "1 section" : `${found.length} sections`;
    note.textContent = words.length ? (found.length ? counted : "Nothing found.") : "Arrow keys choose, Enter opens.";
    live.textContent = words.length ? note.textContent : "";
    select(0);
  }

  async function openSearch() {
    if (dialog.open) return;
    setMenu(false);
    dialog.showModal();
    input.select();
    try {
      await loadIndex();
      show();
    } catch {
      note.textContent = "The search index could not be loaded.";
    }
  }

  searchButton.hidden = false;
  searchButton.addEventListener("click", openSearch);
  input.addEventListener("input", () => index && show());
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      select(selected + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Escape") {
      event.preventDefault();
      dialog.close();
    } else if (event.key === "Enter") {
      event.preventDefault();
      results.children[selected]?.click();
    }
  });
  results.addEventListener("click", (event) => {
    if (event.target.closest("a")) dialog.close();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    const shortcut = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
    if (shortcut || (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey)) {
      event.preventDefault();
      openSearch();
    }
  });
})();
