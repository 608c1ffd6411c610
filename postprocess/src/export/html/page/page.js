// The page: a section for each question, one of which is shown.

function showPage(data) {
  const page = document.getElementById("page");
  const header = element("header");
  header.append(element("h1", "", data.title));
  const facts = element("ul", "facts");
  for (const [name, value, kind] of data.facts) {
    const fact = element("li");
    fact.append(document.createTextNode(name + " "), element("b", "", shown(kind, value)));
    facts.append(fact);
  }
  header.append(facts);
  const nav = element("nav");
  nav.setAttribute("role", "tablist");
  const main = element("main");
  page.append(header, nav, main);

  const sections = data.sections
    .filter((section) => section.id === "overview" || section.tables.some((table) => table.total > 0))
    .map((section) => {
      const panel = element("section");
      panel.id = "section-" + section.id;
      panel.setAttribute("role", "tabpanel");
      panel.hidden = true;
      const button = element("button", "", section.title);
      button.type = "button";
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", panel.id);
      nav.append(button);
      main.append(panel);
      return { section, panel, button, views: null };
    });

  function show(chosen) {
    for (const entry of sections) {
      entry.panel.hidden = entry !== chosen;
      entry.button.setAttribute("aria-selected", String(entry === chosen));
    }
    if (chosen.views === null) {
      if (chosen.section.id === "overview") chosen.panel.append(overview(data));
      chosen.views = chosen.section.tables
        .filter((table) => table.total > 0)
        .map((table) => {
          chosen.panel.append(element("h2", "", table.title), element("p", "", table.help));
          const view = tableView(table);
          chosen.panel.append(view.element);
          return view;
        });
    }
    for (const view of chosen.views) view.draw();
  }

  for (const entry of sections) {
    entry.button.addEventListener("click", () => {
      location.replace("#" + entry.section.id);
      show(entry);
    });
  }
  const asked = sections.find((entry) => "#" + entry.section.id === location.hash);
  show(asked || sections[0]);
}

showPage(JSON.parse(document.getElementById("data").textContent));
