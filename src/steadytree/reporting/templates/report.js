"use strict";
// Evaluates the model that the page holds as JSON; the page reads whole without it.
(() => {
const data = JSON.parse(document.getElementById("steadytree-data").textContent);
const cases = data.cases;
const byId = id => document.getElementById(id);
const cost = price => price === null ? Infinity : price;  // null stands for infinity
const bits = new DataView(new ArrayBuffer(8));

function above(x) {  // the next greater number
  if (!Number.isFinite(x)) return x;
  if (x === 0) return Number.MIN_VALUE;
  bits.setFloat64(0, x);
  bits.setBigInt64(0, bits.getBigInt64(0) + (x > 0 ? 1n : -1n));
  return bits.getFloat64(0);
}

// a value that is missing, or a category that nobody knows, which is -1
const absent = (column, x) => x === null || (cases.columns[column].categories.length > 0 && x < 0);

// ---- what a change costs ----
// A box holds {low, high, missing, allowed}: low < x <= high, or the allowed categories.
function move(column, x, box) {
  const c = cases.columns[column], home = {size: 0, end: x}, never = {size: Infinity, end: x};
  if (c.categories.length) {
    if (absent(column, x) ? box.missing : box.allowed[x]) return home;
    const first = box.allowed.indexOf(true);
    return first < 0 ? never : {size: cost(x === null ? c.missing : c.up), end: first};
  }
  if (x === null ? box.missing : box.low < x && x <= box.high) return home;
  const whole = c.integer && (x === null || Number.isInteger(x));
  const bound = (value, otherwise) => value === null ? otherwise : value;
  let least = box.low === -Infinity ? -Infinity : whole ? Math.floor(box.low) + 1 : above(box.low);
  let most = whole ? Math.floor(box.high) : box.high;
  const low = bound(c.low, -Infinity), high = bound(c.high, Infinity);
  least = Math.max(least, whole ? Math.ceil(low) : low);
  most = least === Infinity ? -Infinity : Math.min(most, whole ? Math.floor(high) : high);
  if (least > most) return never;
  const end = Math.min(Math.max(x === null ? 0 : x, least), most);
  if (x === null) return {size: cost(c.missing), end};
  return {size: x > box.high ? (x - most) * cost(c.down) : (least - x) * cost(c.up), end};
}

const add = (total, size) => cases.largest ? Math.max(total, size) : total + size;

// ---- trees ----
function goesLeft(model, node, x) {
  const value = x[model.column[node]];
  if (absent(model.column[node], value)) return model.missing_left[node];
  const listed = model.categories[node];
  return listed ? listed.includes(value) : value <= Number(model.threshold[node]);
}

function pathOf(model, x) {
  const path = [0];
  for (let node = 0; model.left[node] >= 0; path.push(node))
    node = goesLeft(model, node, x) ? model.left[node] : model.right[node];
  return path;
}

// categories that a model does not know go where missing values go, but change as others do
const seenBy = (model, x) => x.map((value, j) =>
  value === null || !model.known[j] ? value : model.known[j][value] ?? -1);
const sizeOf = (model, j) => (model.known[j] || []).filter(one => one !== null).length;

function boxesOf(model) {  // of all leaves, by column
  const found = [];
  const visit = (node, boxes) => {
    if (model.left[node] < 0) return found.push({node, boxes});
    const j = model.column[node], n = sizeOf(model, j);
    const old = boxes[j] ||
      {low: -Infinity, high: Infinity, missing: true, allowed: Array(n).fill(true)};
    for (const yes of [true, false]) {
      const box = {...old, missing: old.missing && model.missing_left[node] === yes};
      const listed = model.categories[node];
      if (listed) box.allowed = old.allowed.map((a, k) => a && listed.includes(k) === yes);
      else if (yes) box.high = Math.min(old.high, Number(model.threshold[node]));
      else box.low = Math.max(old.low, Number(model.threshold[node]));
      visit(yes ? model.left[node] : model.right[node], {...boxes, [j]: box});
    }
  };
  visit(0, {});
  return found;
}

function turnTree(model, x, wanted, only) {
  let best = {size: Infinity, ends: {}};
  for (const {node, boxes} of boxesOf(model)) {
    if (!wanted(node)) continue;
    let size = 0;
    const ends = {};
    for (const [j, box] of Object.entries(boxes)) {
      const moved = move(+j, x[j], box);
      const fixed = only !== undefined && +j !== only && moved.end !== x[j];
      size = add(size, fixed ? Infinity : moved.size);
      if (moved.end !== x[j]) ends[j] = moved.end;
    }
    if (size < best.size) best = {size, ends};
  }
  return best;
}

// ---- risk scores ----
const NUMBER = 0, CATEGORY = 1, MISSING = 2;

function boxOf(model, part, bin) {
  const n = sizeOf(model, part.column);
  return {low: bin.low === null ? -Infinity : bin.low, high: bin.high === null ? Infinity : bin.high,
          missing: bin.sort === MISSING,
          allowed: Array.from({length: n}, (_, k) => bin.sort === CATEGORY && k === bin.low)};
}

function moveToBin(model, part, bin, x) {
  if (bin.sort === MISSING)
    return {size: absent(part.column, x) ? 0 : Infinity, end: x};
  return move(part.column, x, boxOf(model, part, bin));
}

const stays = (moved, value) => moved.size === 0 && moved.end === value;

function totalsOf(model, x) {
  const totals = [...model.offset];
  for (const part of model.parts) {
    const value = x[part.column];
    const own = part.bins.find(bin => stays(moveToBin(model, part, bin, value), value));
    own.points.forEach((points, k) => { totals[k] += points; });
  }
  return totals;
}

const firstGreatest = totals => totals.indexOf(Math.max(...totals));

function turnCard(model, x, own, only) {
  const totals = totalsOf(model, x);
  let best = {size: Infinity, ends: {}};
  model.classes.forEach((_, other) => {
    if (other === own) return;
    const needed = totals[own] - totals[other] + (other > own ? 1 : 0);
    const parts = model.parts.map(part => {
      const value = x[part.column];
      const moves = part.bins.map(bin => ({...moveToBin(model, part, bin, value),
                                           lead: bin.points[other] - bin.points[own]}));
      const home = moves.find(one => stays(one, value));
      return moves.filter(one => one !== home && (only === undefined || part.column === only))
        .map(one => ({...one, column: part.column, gain: one.lead - home.lead}))
        .filter(one => one.gain > 0 && one.size < Infinity);
    });
    const found = cases.largest ? leastLargest(parts, needed) : leastTotal(parts, needed);
    if (found.size < best.size) best = found;
  });
  return best;
}

function leastTotal(parts, needed) {  // cheapest way to gain what is needed, part by part
  let best = Array.from({length: needed + 1}, (_, goal) => ({size: goal ? Infinity : 0, ends: {}}));
  for (const moves of parts) {
    const earlier = best;
    best = earlier.map((one, goal) => {
      for (const m of moves) {
        const rest = earlier[Math.max(goal - m.gain, 0)];
        if (goal > 0 && rest.size + m.size < one.size)
          one = {size: rest.size + m.size, ends: {...rest.ends, [m.column]: m.end}};
      }
      return one;
    });
  }
  return best[needed];
}

function leastLargest(parts, needed) {
  const sizes = [...new Set(parts.flat().map(one => one.size))].sort((a, b) => a - b);
  for (const size of sizes) {
    const chosen = parts.map(moves => moves.filter(one => one.size <= size)
      .reduce((a, b) => a && a.gain >= b.gain ? a : b, null)).filter(Boolean);
    let total = chosen.reduce((sum, one) => sum + one.gain, 0);
    if (total < needed) continue;
    const ends = {};
    for (const one of chosen) {
      if (total - one.gain >= needed) total -= one.gain;
      else ends[one.column] = one.end;
    }
    return {size, ends};
  }
  return {size: Infinity, ends: {}};
}

// ---- one case ----
function decide(model, x) {  // x as `seenBy` the model
  if (model.kind === "card") return firstGreatest(totalsOf(model, x));
  return model.label[pathOf(model, x).at(-1)];
}

function wilson(share, n) {
  if (!(n > 0)) return null;
  const z = 1.959963984540054, spread = z * z / n, middle = (share + spread / 2) / (1 + spread);
  const half = z / (1 + spread) * Math.sqrt(share * (1 - share) / n + spread / (4 * n));
  return [share > 0 ? Math.max(0, middle - half) : 0, share < 1 ? Math.min(1, middle + half) : 1];
}

function probability(model, x) {
  const own = decide(model, x);
  if (model.kind === "tree") {
    const leaf = pathOf(model, x).at(-1), share = model.share[leaf], n = model.weight[leaf];
    return {share, interval: wilson(share, n), n_rows: n};
  }
  const totals = totalsOf(model, x), none = {share: null, interval: null, n_rows: null};
  if (model.classes.length > 2) {
    if (model.slope === null) return none;
    const levels = totals.map(total => Math.exp(model.slope * (total - totals[own])));
    return {...none, share: 1 / levels.reduce((a, b) => a + b, 0)};
  }
  const {risk, interval, n_rows} = model.risks.find(one => one.total === totals[1]);
  if (own === 1) return {share: risk, interval, n_rows};
  return {share: risk === null ? null : 1 - risk, n_rows,
          interval: interval && [1 - interval[1], 1 - interval[0]]};
}

// the band of a variable that a value is in; that of missing values is the last
function bandOf(variable, value) {
  const missing = variable.texts.length - 1;
  if (value === null) return missing;
  if (variable.band.length) return variable.band[value] ?? missing;
  return variable.thresholds.filter(at => at <= value).length;
}

function explain(given) {
  const model = cases.model, x = seenBy(model, given), own = decide(model, x), tree = model.kind === "tree";
  const turn = only => tree ? turnTree(model, x, node => model.label[node] !== own, only)
                            : turnCard(model, x, own, only);
  const after = found => decide(model, x.map((value, j) => j in found.ends ? found.ends[j] : value));
  const least = turn(), changes = [];
  if (least.size < Infinity) {
    const alone = cases.columns.map((_, j) => turn(j)).filter(one => one.size < Infinity)
      .filter(one => JSON.stringify(one) !== JSON.stringify(least)).sort((a, b) => a.size - b.size);
    for (const one of [least, ...alone]) changes.push({...one, decision: after(one)});
  }
  let inside = Infinity, stages = [];
  if (tree) {
    const path = pathOf(model, x), leaf = path.at(-1);
    inside = turnTree(model, x, node => node !== leaf).size;
    stages = path.slice(0, -1).map(node => ({text: model.text[node], holds: goesLeft(model, node, x),
                                             column: model.column[node], points: null}));
  } else {
    const totals = totalsOf(model, x);
    const gaps = totals.map((total, k) => k === own ? Infinity : totals[own] - total + (k > own));
    inside = Math.min(...gaps);
    const whose = model.classes.length === 2 ? 0 : own;
    stages = model.variables.map(one => {
      const band = bandOf(one, x[one.column]);
      return {text: one.texts[band], holds: true, column: one.column, points: one.points[band][whose]};
    });
  }
  const old = cases.previous, seen = old && seenBy(old, given);
  const before = old && {decision: decide(old, seen), ...probability(old, seen)};
  return {decision: own, ...probability(model, x), stages, changes, inside, before};
}

// ---- what the page shows ----
const percent = share => {
  const rounded = (100 * share).toFixed(0);
  if (rounded === "0" && share > 0) return "< 1 %";
  return rounded === "100" && share < 1 ? "> 99 %" : rounded + " %";
};
const shown = (column, value, digits = 6) => {
  if (value === null) return "missing";
  const names = cases.columns[column].categories;
  return names.length ? names[value] ?? "unknown" : String(+value.toPrecision(digits));
};

// the end of a change as what is enough; just beyond a threshold "above 45.5", as explain has it
function enough(from, to) {
  const close = 1e-3 * Math.abs(to - from), up = to > from;
  let text = "";
  for (let digits = 4; digits < 18; digits++) {
    text = Math.abs(to) > 1e-300 ? String(+to.toPrecision(digits)) : "0";
    const lacks = up ? to - text : text - to;
    if (-close <= lacks && lacks <= 0) return text;
    if (lacks > 0 && lacks <= Math.max(2 ** -22 * Math.abs(to), 1e-300)) return `${up ? "above" : "below"} ${text}`;
  }
  return text;
}

function stepText(column, from, to) {
  const {name, categories} = cases.columns[column];
  const numbers = from !== null && to !== null && !categories.length;
  const end = numbers ? enough(from, to) : shown(column, to), at = end.split(" ").at(-1);
  let digits = 4;
  while (numbers && digits < 17 && shown(column, from, digits) === at) digits++;
  return `${name} from ${shown(column, from, digits)} to ${end}`;
}

function element(tag, text, parent, kind) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  if (kind) made.className = kind;
  if (parent) parent.append(made);
  return made;
}

function show(x) {
  const found = explain(x), classes = cases.model.classes, box = byId("explanation");
  box.replaceChildren();
  const row = cases.rows.find(one => one.values.every((value, j) => value === x[j]));
  element("p", row ? `Row ${row.row}, actually ${row.actual}.` : "Values as entered.", box, "quiet small");
  const head = element("p", "", box);
  element("b", classes[found.decision], head, "decision");
  let chance = found.share === null ? " No probability is known." : ` Probability ${percent(found.share)}`;
  if (found.share !== null && found.interval) {
    const whose = cases.model.kind === "tree" ? "leaf" : "total";
    chance += `; ${percent(found.interval[0])} to ${percent(found.interval[1])} by the ` +
      `${+found.n_rows.toPrecision(6)} training rows of its ${whose}.`;
  }
  element("span", chance, head);
  const list = element("ol", "", box, "stages");
  for (const one of found.stages) {
    const item = element("li", one.text + (one.points === null ? "? " : ", "), list);
    const points = `${one.points > 0 ? "+" : ""}${one.points}`;
    element("b", one.points !== null ? points : one.holds ? "yes" : "no", item);
    element("span", ` (it is ${shown(one.column, x[one.column])})`, item, "quiet");
  }
  element("p", cases.model.kind === "card" ? `Its total is ${found.inside} points away from another decision.`
    : found.inside < Infinity ? `The smallest change into another leaf has size ${+found.inside.toPrecision(4)}.`
    : "No allowed change leads to another leaf.", box);
  element("p", found.changes.length ? "Smallest changes that change the prediction; each line is enough by itself:"
    : "No allowed change changes the prediction.", box);
  const changes = element("ul", "", box, "changes");
  for (const one of found.changes) {
    const steps = Object.entries(one.ends).map(([j, end]) => stepText(+j, x[j], end));
    const item = element("li", steps.join("; "), changes);
    element("span", ` (size ${+one.size.toPrecision(4)}): ${classes[one.decision]}`, item, "quiet");
  }
  if (found.before) {
    const was = cases.previous.classes[found.before.decision];
    const share = found.before.share === null ? "" : ` (${percent(found.before.share)})`;
    const same = was === classes[found.decision] ? "the same" : "another decision";
    element("p", `The previous model decided ${was}${share}: ${same}.`, box);
  }
  element("p", cases.measure, box, "quiet small");
  mark();
}

// ---- the tree's picture: the path of a case, of a leaf, and what noise does ----
const picture = document.querySelector("#tree .picture");
const parts = name => picture ? [...picture.querySelectorAll(`[data-node="${name}"]`)] : [];

function markPath(nodes, kind) {
  if (!picture) return;
  picture.querySelectorAll("." + kind).forEach(one => one.classList.remove(kind));
  for (const node of nodes) parts(node).forEach(one => one.classList.add(kind));
}

let current = null;
function mark() {
  if (cases && cases.model.kind === "tree" && current) markPath(pathOf(cases.model, seenBy(cases.model, current)), "on-path");
}

function startCases() {
  if (!cases || !byId("case-form")) return;
  const form = byId("case-form"), fields = cases.columns.map((column, j) => {
    const label = element("label", "", form);
    element("span", column.name, label);
    const field = element(column.categories.length ? "select" : "input", "", label);
    if (column.categories.length) {
      const strange = cases.rows.some(one => one.values[j] === -1) ? [[-1, "(unknown)"]] : [];
      const listed = column.categories.map((name, k) => [k, name]);
      for (const [k, name] of [["", "(missing)"], ...strange, ...listed]) {
        const option = element("option", name, field);
        option.value = k;
      }
    } else {
      field.type = "number";
      field.step = "any";
      field.placeholder = "missing";
      if (column.range[0] !== null) field.title = `${column.range[0]} to ${column.range[1]} in the model`;
    }
    return field;
  });
  const values = () => fields.map(field => field.value === "" ? null : Number(field.value));
  const refresh = () => { current = values(); show(current); };
  const fill = x => { x.forEach((value, j) => { fields[j].value = value === null ? "" : value; }); };
  const pick = byId("case-pick");
  cases.rows.forEach((row, k) => {
    const option = element("option", `row ${row.row}: actually ${row.actual}`, pick);
    option.value = k;
  });
  pick.parentElement.hidden = !cases.rows.length;
  pick.addEventListener("change", () => { fill(cases.rows[pick.value].values); refresh(); });
  form.addEventListener("input", refresh);
  if (cases.rows.length) { fill(cases.rows[0].values); refresh(); }
  byId("case-controls").hidden = false;
}

function startNoise() {
  const steps = data.robustness && data.robustness.steps, slider = byId("noise-slider");
  if (!steps || !slider || !picture) return;
  slider.max = steps.size.length - 1;
  const leafText = one => {
    const leaf = data.tree.nodes.find(node => node.id === one.node);
    return leaf ? leaf.conditions.join(" and ") || "the only leaf" : `leaf ${one.node}`;
  };
  const refresh = () => {
    const k = +slider.value;
    byId("noise-size").textContent = String(+steps.size[k].toPrecision(3));
    byId("noise-accuracy").textContent = (100 * steps.certified_accuracy[k]).toFixed(1) + " %";
    const fallen = steps.leaves.filter(one => one.n_rows && one.stays[k] < 1)
      .sort((a, b) => a.stays[k] - b.stays[k]).slice(0, 3);
    const list = byId("noise-leaves");
    list.replaceChildren();
    for (const one of fallen)
      element("li", `${leafText(one)}: ${percent(one.stays[k])} of ${one.n_rows} correct rows stay correct`, list);
    if (!fallen.length) element("li", "none yet", list);
    for (const one of steps.leaves)
      parts(one.node).forEach(part => { part.style.opacity = 0.25 + 0.75 * one.stays[k]; });
  };
  slider.addEventListener("input", refresh);
  byId("noise-controls").hidden = false;
}

function startCandidates() {
  const shown = [...document.querySelectorAll(".candidate")], slider = byId("candidate-slider");
  if (!slider || shown.length < 2) return;
  slider.max = shown.length - 1;
  const refresh = () => shown.forEach((one, k) => { one.hidden = k !== +slider.value; });
  slider.value = shown.findIndex(one => one.classList.contains("is-model"));
  slider.addEventListener("input", refresh);
  byId("candidate-controls").hidden = false;
  refresh();
}

function startPicture() {
  if (!picture || !data.tree) return;
  const nodes = data.tree.nodes;
  for (const leaf of picture.querySelectorAll("g.leaf")) {
    const path = [];
    for (let at = nodes.findIndex(node => String(node.id) === leaf.dataset.node); at !== null && at >= 0;
         at = nodes[at].parent) path.push(nodes[at].id);
    leaf.addEventListener("mouseenter", () => markPath(path, "hovered"));
    leaf.addEventListener("mouseleave", () => markPath([], "hovered"));
  }
}

// every fold is printed open
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach(one => { one.open = true; });
  document.querySelectorAll(".candidate").forEach(one => { one.hidden = false; });
});
addEventListener("afterprint", () => {
  closed.forEach(one => { one.open = false; });
  const slider = byId("candidate-slider");
  if (slider) slider.dispatchEvent(new Event("input"));
});

startCases();
startNoise();
startCandidates();
startPicture();
window.steadytree = {explain};
})();
