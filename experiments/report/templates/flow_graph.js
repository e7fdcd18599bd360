"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const rounds = data.rounds;
  const id = (name) => document.getElementById(name);
  const UNBOUNDED = 1 << 30;
  const paper = document.querySelector(".paper");
  let now = 0;
  let picked = null; // the task's index on the page
  let pinned = null; // a node or line that was clicked

  const number = (value) => value.toLocaleString("en");
  const capacity = (value) => (value >= UNBOUNDED ? "any number" : number(value));
  const element = (name, text, classes) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (classes) made.className = classes;
    return made;
  };
  const drawing = () => id(`round-${now}`);
  const round = () => rounds[now];
  const nodeOf = (index) => round().nodes.find((node) => node.index === index);
  const taskOf = (index) => round().tasks.find((task) => task.index === index);
  const nameOf = (index) => {
    for (const one of [round(), rounds[Math.max(now - 1, 0)]]) {
      const found = one.nodes.find((node) => node.index === index);
      if (found) return found.name;
    }
    return "?";
  };
  const arcsBetween = (tail, head) =>
    round().arcs.filter((arc) => arc.tail === tail && arc.head === head);

  // --- which arcs are lit ---------------------------------------------------------------------

  function light(arcs, changes) {
    const graph = drawing();
    graph.classList.remove("traced");
    for (const one of graph.querySelectorAll(".lit, .more, .less"))
      one.classList.remove("lit", "more", "less");
    const all = [...arcs.map((arc) => [arc, null]), ...changes];
    if (all.length === 0) return;
    graph.classList.add("traced");
    for (const [row, more] of all) {
      const arc = round().arcs[row];
      const at = `[data-a="${arc.tail}"][data-b="${arc.head}"]`;
      for (const one of graph.querySelectorAll(at)) {
        one.classList.add("lit");
        if (more !== null) one.classList.add(more ? "more" : "less");
      }
      for (const end of [arc.tail, arc.head])
        graph.querySelector(`[data-n="${end}"]`)?.classList.add("lit");
    }
  }

  function lightNode(index) {
    const rows = [];
    round().arcs.forEach((arc, row) => {
      if (arc.tail === index || arc.head === index) rows.push(row);
    });
    light(rows, []);
  }

  // --- what is told ---------------------------------------------------------------------------

  function tell(...parts) {
    id("details").replaceChildren(...parts);
  }

  function was(value, before) {
    return before === undefined ? "" : ` (${value(before)} in the round before)`;
  }

  function arcLines(arcs) {
    const list = element("ul");
    for (const arc of arcs) {
      const cost = `cost ${number(arc.cost)}${was(number, arc.cost_was)}`;
      const room = `${capacity(arc.capacity)}${was(capacity, arc.capacity_was)}`;
      const flow = `flow ${number(arc.flow)}${was(number, arc.flow_was)} of ${room}`;
      const ends = `${nameOf(arc.tail)} → ${nameOf(arc.head)}`;
      list.append(element("li", `${ends}: ${cost}, ${flow}${arc.new ? ", new" : ""}`));
    }
    return list;
  }

  function tellLink(tail, head) {
    const arcs = arcsBetween(tail, head);
    const title = element("h3", `${nameOf(tail)} → ${nameOf(head)}`);
    if (arcs.length === 0) tell(title, element("p", "Gone since the round before."));
    else tell(title, arcLines(arcs));
  }

  const KINDS = {
    task: "a task",
    aggregator: "an aggregator of the policy",
    entrance: "where placements on a machine pay for their slot",
    machine: "a machine",
    unscheduled: "an unscheduled aggregator: tasks wait here",
    patience: "tasks wait here for a place that they prefer",
    sink: "the sink: all flow ends here",
  };

  function tellNode(index) {
    const task = taskOf(index);
    if (task) return tellTask(task);
    const node = nodeOf(index);
    if (!node) return tell(element("h3", nameOf(index)), element("p", "Left the graph."));
    const title = element("h3", `${node.name}, ${KINDS[node.kind]}`);
    const parts = [title];
    if (node.kind === "machine") {
      const worth = node.price > 0 ? number(node.price) : "nothing: there is room";
      parts.push(element("p", `One more place here would be worth ${worth}.`));
    } else if (node.kind !== "sink") {
      parts.push(element("p", `Price: ${number(node.price)}.`));
    }
    if (node.kind === "unscheduled" && node.supply < 0)
      parts.push(element("p", `${number(-node.supply)} of its tasks have to wait, says the policy.`));
    if (node.hidden) parts.push(element("p", `${number(node.hidden)} of its arcs are not drawn.`));
    const into = round().arcs.filter((arc) => arc.head === index);
    const out = round().arcs.filter((arc) => arc.tail === index);
    const most = 12;
    for (const [what, arcs] of [["In", into], ["Out", out]]) {
      if (arcs.length === 0) continue;
      const first = [...arcs].sort((a, b) => b.flow - a.flow).slice(0, most);
      const more = arcs.length > most ? `, those with most flow` : "";
      parts.push(element("p", `${what}: ${number(arcs.length)}${more}`, "soft"), arcLines(first));
    }
    tell(...parts);
  }

  function tellTask(task) {
    const title = element("h3", task.title);
    const facts = element("p", task.facts.join("; "), "soft");
    const why = element("ul");
    for (const line of task.why) why.append(element("li", line));
    const table = element("table", undefined, "ways");
    const head = element("tr");
    for (const name of ["Other way", "Cost", "+ full", "Dearer by"])
      head.append(element("th", name));
    const headed = element("thead");
    headed.append(head);
    const body = element("tbody");
    for (const way of task.ways) {
      const row = element("tr");
      const to = element("td", way.to);
      for (const full of way.full) to.append(element("small", `full: ${full}`));
      const unknown = round().proved ? "no room" : "unknown";
      const extra = way.extra === null ? unknown : number(way.extra);
      row.append(to, element("td", number(way.cost)));
      row.append(element("td", way.rent === null ? "unknown" : number(way.rent)));
      row.append(element("td", extra));
      row.addEventListener("click", () => {
        for (const one of body.querySelectorAll(".chosen, .steps"))
          one.classList.contains("steps") ? one.remove() : one.classList.remove("chosen");
        row.classList.add("chosen");
        if (way.steps.length) {
          const steps = element("tr", undefined, "steps");
          const cell = element("td", `The flow would change: ${way.steps.join("; ")}.`);
          cell.colSpan = 4;
          steps.append(cell);
          row.after(steps);
          light([], way.changes);
        } else light(way.path, []);
      });
      body.append(row);
    }
    table.append(headed, body);
    const rent = task.rent === null ? "" : `, ${number(task.rent)} for full arcs on it`;
    const own = `Its own way: ${number(task.cost)}${rent}.`;
    const parts = [title];
    if (task.facts.length) parts.push(facts);
    parts.push(why);
    if (task.ways.length) {
      parts.push(table, element("p", own, "soft"));
      const hint = "“+ full”: the price of full arcs. Click a way to see what would change.";
      parts.push(element("p", hint, "soft"));
    }
    tell(...parts);
  }

  // --- choosing -------------------------------------------------------------------------------

  function pickTask(index) {
    picked = index;
    pinned = null;
    id("task").value = index === null ? "" : String(index);
    show();
  }

  function clear() {
    pinned = null;
    pickTask(null);
  }

  function mark() {
    const graph = drawing();
    for (const one of graph.querySelectorAll(".picked")) one.classList.remove("picked");
    const task = picked === null ? undefined : taskOf(picked);
    if (task) {
      const node = graph.querySelector(`[data-n="${picked}"]`);
      node.classList.add("picked");
      const [its, all] = [node.getBoundingClientRect(), paper.getBoundingClientRect()];
      if (its.top < all.top || its.bottom > all.bottom)
        paper.scrollTop += its.top - all.top - all.height / 2;
      light(task.path, []);
      tellTask(task);
    } else if (picked !== null) {
      light([], []);
      tell(element("h3", id("task").selectedOptions[0]?.textContent ?? "The task"),
        element("p", "It is not in the graph of this round."));
    } else if (pinned) {
      if (pinned.length === 1) {
        lightNode(pinned[0]);
        tellNode(pinned[0]);
      } else tellLink(pinned[0], pinned[1]);
    } else {
      light([], []);
      tell(element("p", "Point at a node or an arc, or choose a task.", "soft"));
    }
  }

  function show() {
    rounds.forEach((_, place) => id(`round-${place}`).toggleAttribute("hidden", place !== now));
    const its = round();
    const early = `ended early, ${number(its.unrouted)} tasks not routed`;
    const proofs = new Map([[null, early], [true, "proved optimal"]]);
    const proof = proofs.get(its.proved) ?? "NOT optimal";
    const at = `${(its.at_us / 1e6).toLocaleString("en", { minimumFractionDigits: 3 })} s`;
    id("now").textContent = `Round ${its.number} at ${at}: cost ${number(its.cost)}, ${proof}`;
    id("changed").replaceChildren(...its.changed.map((line) => element("li", line)));
    if (its.changed.length === 0) id("changed").append(element("li", "nothing"));
    for (const row of document.querySelectorAll(".rounds tbody tr")) {
      const here = Number(row.dataset.round) === now;
      row.classList.toggle("here", here);
      if (here) row.scrollIntoView({ block: "nearest" });
    }
    id("first").disabled = id("back").disabled = now === 0;
    id("last").disabled = id("next").disabled = now === rounds.length - 1;
    mark();
    location.replace(`#round=${its.number}${picked === null ? "" : `&task=${nameOfTask(picked)}`}`);
  }

  function nameOfTask(index) {
    return id("task").querySelector(`option[value="${index}"]`)?.textContent ?? "";
  }

  function go(place) {
    now = Math.max(0, Math.min(rounds.length - 1, place));
    show();
  }

  const names = new Map();
  for (const one of rounds)
    for (const task of one.tasks)
      names.set(task.index, one.nodes.find((node) => node.index === task.index).name);
  const sorted = [...names].sort((a, b) => Number(a[1].slice(1)) - Number(b[1].slice(1)));
  for (const [index, name] of sorted) {
    const option = element("option", name);
    option.value = index;
    id("task").append(option);
  }

  const target = (event) => event.target.closest?.("[data-n], .link[data-a]");
  paper.addEventListener("mouseover", (event) => {
    if (picked !== null || pinned) return;
    const on = target(event);
    if (!on) return;
    if (on.dataset.n !== undefined) {
      const task = taskOf(Number(on.dataset.n));
      if (task) light(task.path, []);
      else lightNode(Number(on.dataset.n));
      tellNode(Number(on.dataset.n));
    } else tellLink(Number(on.dataset.a), Number(on.dataset.b));
  });
  paper.addEventListener("mouseout", (event) => {
    if (picked === null && !pinned && target(event)) light([], []);
  });
  function choose(on) {
    if (on.dataset.n === undefined) pinned = [Number(on.dataset.a), Number(on.dataset.b)];
    else if (taskOf(Number(on.dataset.n))) return pickTask(Number(on.dataset.n));
    else pinned = [Number(on.dataset.n)];
    picked = null;
    id("task").value = "";
    mark();
  }
  paper.addEventListener("click", (event) => {
    const on = target(event);
    if (on) choose(on);
    else clear();
  });
  paper.addEventListener("focusin", (event) => {
    const on = target(event);
    if (on && picked === null && !pinned) tellNode(Number(on.dataset.n));
  });
  /** Scroll a tall graph to its machines: above and below there may be places for tasks of other
   * rounds only. */
  function centre() {
    const boxes = [...drawing().querySelectorAll(".machine")].map((one) =>
      one.getBoundingClientRect());
    if (boxes.length === 0) return;
    const all = paper.getBoundingClientRect();
    const top = Math.min(...boxes.map((box) => box.top));
    const bottom = Math.max(...boxes.map((box) => box.bottom));
    paper.scrollTop += (top + bottom) / 2 - all.top - all.height / 2;
  }
  function fit() {
    const fits = paper.classList.toggle("fit");
    id("fit").setAttribute("aria-pressed", String(fits));
  }
  id("fit").addEventListener("click", fit);
  id("first").addEventListener("click", () => go(0));
  id("back").addEventListener("click", () => go(now - 1));
  id("next").addEventListener("click", () => go(now + 1));
  id("last").addEventListener("click", () => go(rounds.length - 1));
  id("clear").addEventListener("click", clear);
  id("task").addEventListener("change", (event) =>
    pickTask(event.target.value === "" ? null : Number(event.target.value)));
  for (const row of document.querySelectorAll(".rounds tbody tr"))
    row.addEventListener("click", () => go(Number(row.dataset.round)));
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("select, input") || event.ctrlKey || event.metaKey || event.altKey)
      return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const tasks = round().tasks.map((task) => task.index);
    if (step) go(now + step);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(rounds.length - 1);
    else if (event.key === "f") fit();
    else if (event.key === "Escape") clear();
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && tasks.length) {
      const order = sorted.map(([index]) => index).filter((index) => tasks.includes(index));
      const down = event.key === "ArrowDown";
      const at = order.indexOf(picked);
      pickTask(order[at < 0 ? (down ? 0 : order.length - 1)
        : (at + (down ? 1 : -1) + order.length) % order.length]);
    } else if (event.key === "Enter" && document.activeElement?.matches("[data-n]"))
      choose(document.activeElement);
    else return;
    event.preventDefault();
  });

  const asked = new URLSearchParams(location.hash.slice(1));
  const first = rounds.findIndex((one) => String(one.number) === asked.get("round"));
  if (first >= 0) now = first;
  const named = sorted.find(([, name]) => name === asked.get("task"));
  if (named) pickTask(named[0]);
  else {
    show();
    centre();
  }
})();
