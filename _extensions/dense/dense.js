// What the content of a page does, in both engines: tabs, copy buttons, disclosures that open for a link,
// definitions of terms, and boxes that scroll sideways and so must be reachable by keyboard.
// Without it every text is still there.
(() => {
  "use strict";

  function makeTabs(set, number) {
    const panes = [...set.children].filter((child) => child.classList.contains("tab-pane"));
    if (!panes.length || set.querySelector(":scope > [role=tablist]")) return;
    const list = document.createElement("div");
    list.className = "tab-list";
    list.setAttribute("role", "tablist");
    const tabs = panes.map((pane, index) => {
      const tab = document.createElement("button");
      const title = pane.querySelector(":scope > .tab-title");
      tab.type = "button";
      tab.id = `tab-${number}-${index}`;
      tab.append(...[...title.childNodes].map((node) => node.cloneNode(true)));
      tab.setAttribute("role", "tab");
      pane.id ||= `tab-pane-${number}-${index}`;
      pane.setAttribute("role", "tabpanel");
      pane.setAttribute("aria-labelledby", tab.id);
      tab.setAttribute("aria-controls", pane.id);
      list.append(tab);
      return tab;
    });
    const select = (chosen) => {
      tabs.forEach((tab, index) => {
        const selected = index === chosen;
        tab.setAttribute("aria-selected", String(selected));
        tab.tabIndex = selected ? 0 : -1;
        panes[index].hidden = !selected;
      });
    };
    list.addEventListener("click", (event) => {
      const index = tabs.indexOf(event.target.closest("button"));
      if (index >= 0) select(index);
    });
    list.addEventListener("keydown", (event) => {
      const now = tabs.indexOf(document.activeElement);
      const last = tabs.length - 1;
      const next = {
        ArrowRight: now === last ? 0 : now + 1,
        ArrowLeft: now === 0 ? last : now - 1,
        Home: 0,
        End: last,
      }[event.key];
      if (now < 0 || next === undefined) return;
      event.preventDefault();
      select(next);
      tabs[next].focus();
    });
    set.prepend(list);
    set.classList.add("ready");
    select(0);
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      area.style.cssText = "position:fixed;opacity:0";
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  function addCopyButton(block) {
    if (block.parentElement.querySelector(":scope > .code-copy-button")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy-button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy the code");
    button.addEventListener("click", async () => {
      const done = await copy(block.querySelector("code").textContent.replace(/\n$/, ""));
      button.textContent = done ? "Copied" : "Not copied";
      button.classList.add("done");
      document.getElementById("live")?.replaceChildren(button.textContent);
      setTimeout(() => {
        button.textContent = "Copy";
        button.classList.remove("done");
      }, 1600);
    });
    block.append(button);
  }

  function linked() {
    try {
      return document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return null; // an address cut short, such as "#50%"
    }
  }

  // A link into a closed disclosure or an unselected tab shows its target.
  function reveal() {
    const target = linked();
    if (!target) return;
    let opened = false;
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS" && !node.open) {
        node.open = opened = true;
      }
      if (node.getAttribute("role") === "tabpanel" && node.hidden) {
        document.getElementById(node.getAttribute("aria-labelledby"))?.click();
        opened = true;
      }
    }
    if (opened) target.scrollIntoView();
  }

  function markScrollable() {
    for (const box of document.querySelectorAll("main :is(pre, .table-scroll, .figure-scroll, .equation-body)")) {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      box.classList.toggle("scrolls", scrolls);
      if (scrolls) box.tabIndex = 0;
      else if (box.tabIndex === 0) box.removeAttribute("tabindex");
    }
  }

  // ---------- definitions: on hover, on keyboard focus, on tap ----------

  const SHOW_AFTER = 150;
  const HIDE_AFTER = 250;

  function glossary() {
    const box = document.createElement("span");
    let term = null; // the link whose definition is shown
    let touched = null; // the link that a finger or pen went down on, and whether it was shown then
    let timer = 0;
    box.className = "glossary-popover";
    box.setAttribute("role", "note");

    function place() {
      const lines = [...term.getClientRects()];
      const first = lines[0];
      const last = lines[lines.length - 1];
      const wide = document.documentElement.clientWidth;
      const below = innerHeight - last.bottom > box.offsetHeight + 16 || first.top < box.offsetHeight + 16;
      const anchor = below ? last : first;
      box.style.left = `${Math.max(12, Math.min(anchor.left, wide - box.offsetWidth - 12))}px`;
      box.style.top = `${below ? anchor.bottom + 6 : anchor.top - box.offsetHeight - 6}px`;
    }

    function fill(definition) {
      const name = document.createElement("strong");
      const text = document.createElement("span");
      const link = document.createElement("a");
      name.textContent = definition.dataset.term;
      for (const block of definition.children) {
        if (text.childNodes.length) text.append(" ");
        text.append(...[...block.cloneNode(true).childNodes]);
      }
      link.href = term.href;
      link.textContent = "in the glossary";
      box.setAttribute("aria-label", `Definition of ${name.textContent}`);
      box.replaceChildren(name, text, link);
      // With the Tab key one goes on to the next term; Enter on the term itself leads to the glossary.
      for (const each of box.querySelectorAll("a")) each.tabIndex = -1;
    }

    function show(link) {
      clearTimeout(timer);
      if (term === link) return;
      hide();
      const definition = document.getElementById(link.getAttribute("aria-describedby"));
      if (!definition) return;
      term = link;
      fill(definition);
      link.after(box);
      place();
    }

    function hide() {
      clearTimeout(timer);
      term = null;
      box.remove();
    }

    const linkOf = (event) => event.target.closest?.("a.glossary-term");
    const isInside = (node) => node instanceof Node && (box.contains(node) || term?.contains(node));

    document.addEventListener("pointerover", (event) => {
      if (event.pointerType === "touch") return;
      const link = linkOf(event);
      if (isInside(event.target)) clearTimeout(timer);
      else if (link) {
        clearTimeout(timer);
        timer = setTimeout(show, SHOW_AFTER, link);
      }
    });
    document.addEventListener("pointerout", (event) => {
      if (event.pointerType === "touch" || isInside(event.relatedTarget)) return;
      if (!isInside(event.target) && !linkOf(event)) return;
      clearTimeout(timer);
      const resting = term && term.matches(":focus-visible");
      if (!resting) timer = setTimeout(hide, HIDE_AFTER);
    });
    document.addEventListener("pointerdown", (event) => {
      const link = linkOf(event);
      touched = link && event.pointerType !== "mouse" ? { link, shown: link === term } : null;
      if (term && !isInside(event.target)) hide();
    });
    document.addEventListener("click", (event) => {
      const link = linkOf(event);
      if (!link || touched?.link !== link) return;
      event.preventDefault();
      if (touched.shown) hide();
      else show(link);
      touched = null;
    });
    document.addEventListener("focusin", (event) => {
      const link = linkOf(event);
      if (link?.matches(":focus-visible") && !touched) show(link);
      else if (term && !isInside(event.target)) hide();
    });
    document.addEventListener("focusout", (event) => {
      if (term && event.relatedTarget && !isInside(event.relatedTarget)) hide();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && term) hide();
    });
    for (const name of ["scroll", "resize"]) {
      addEventListener(name, () => term && place(), { passive: true, capture: true });
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (document.querySelector("a.glossary-term")) glossary();
    document.querySelectorAll("main .panel-tabset").forEach(makeTabs);
    document.querySelectorAll("main div.sourceCode").forEach(addCopyButton);
    reveal();
    markScrollable();
    document.fonts?.ready.then(markScrollable);
    addEventListener("resize", markScrollable);
    addEventListener("hashchange", reveal);
    addEventListener("beforeprint", () => {
      for (const closed of document.querySelectorAll("main details:not([open])")) {
        closed.open = true;
        closed.dataset.closedAfterPrint = "";
      }
    });
    addEventListener("afterprint", () => {
      for (const opened of document.querySelectorAll("main details[data-closed-after-print]")) {
        opened.open = false;
        delete opened.dataset.closedAfterPrint;
      }
    });
  });
})();
