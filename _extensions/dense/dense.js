// What the content of a page does, in both engines: tabs, copy buttons, disclosures that open for a link,
// and boxes that scroll sideways and so must be reachable by keyboard. Without it every text is still there.
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

  // A link into a closed disclosure or an unselected tab shows its target.
  function reveal() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
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

  document.addEventListener("DOMContentLoaded", () => {
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
