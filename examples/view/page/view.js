// The page: what its controls ask for, and what it is told.

import { decodeFrame, decodeModel, digitsOf, kind, short } from "./message.js";
import { Plots } from "./plots.js";
import { Stage } from "./stage.js";

const $ = (id) => document.getElementById(id);
const PACES = [1, 2, 5, 10, 20, 30, 60, 120, 300, 1000, 0];
const PLAY = [1, 2, 3, 5, 8, 10, 12, 15, 20, 25, 30];
const COMPONENTS = { 2: ["x", "y"], 3: ["x", "y", "z"] };

const stage = new Stage($("scene"));
let [model, plots, socket, pending] = [null, null, null, null];
let [values, bounds, seen] = [null, null, ""];
let status = { paused: false, pace: 0, at: 0, over: null, dials: [], refused: null };
let [playing, nextPlay, tries, isNew] = [false, 0, 0, true];
/** What a test may look at. */
const shown = { frames: 0, shapes: 0, bytes: 0, step: -1, time: 0, fps: 0, get wires() { return stage.wires.visible; } };
globalThis.meshweft = shown;

// --- the connection

function ask(request) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(request));
}

function connect() {
  socket = new WebSocket(new URL("live", location.href).href.replace(/^http/, "ws"));
  socket.binaryType = "arraybuffer";
  socket.onopen = () => { tries = 0; isNew = true; trouble(""); };
  socket.onmessage = ({ data }) => (typeof data === "string" ? told(JSON.parse(data)) : received(data));
  socket.onclose = () => {
    if (status.over) return;
    trouble("not connected: the run is over, or its program has ended");
    if (tries++ < 20) setTimeout(connect, 1000);
  };
}

function received(buffer) {
  shown.bytes += buffer.byteLength;
  if (kind(buffer) === 1) {
    shown.shapes++;
    const described = decodeModel(buffer);
    if (isNew) start(described);
    else changed(described);
    isNew = false;
  } else pending = decodeFrame(buffer);
}

function told(news) {
  if (news.trouble !== undefined) trouble(news.trouble);
  else if (news.pick !== undefined) showPick(news);
  else if (news.table !== undefined) showTable(news.table);
  else {
    if (news.refused || status.refused) trouble(news.refused ?? "");
    status = news;
    showStatus();
  }
}

function trouble(text) {
  $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

/** The mesh has other cells: all else stays as it was chosen. */
function changed(described) {
  model = described;
  stage.build(model, true);
  stage.setMap(model.maps[$("map").value]);
  restyle();
  ask({ ready: true });
}

// --- what is told once

function start(described) {
  model = described;
  document.title = `${model.name} – Meshweft`;
  $("name").textContent = model.name;
  const counts = `${model.points.toLocaleString("en")} points, ${model.cells.toLocaleString("en")} cells`;
  const note = model.isPlaced ? "" : "; the points have no places and lie in the order of their numbers";
  $("about").textContent = (model.about ? `${counts}; ${model.about}` : counts) + note;
  stage.build(model);
  plots = new Plots($("plots"), model.metrics);
  plots.fill(model.history);
  options($("field"), [["-1", "one color"], ...model.fields.map(({ name }, i) => [String(i), name])], String(model.color ?? -1));
  options($("map"), Object.keys(model.maps).map((name) => [name, name]), model.map);
  $("props-line").hidden = model.props.length === 0;
  $("dials-line").hidden = model.dials.length === 0;
  $("dials").replaceChildren(...model.dials.map(dial));
  $("surface").parentElement.hidden = model.triangles.length === 0;
  const isRun = !model.times;
  for (const [id, hidden] of [["pace-line", false], ["at", isRun], ["back", isRun]]) $(id).hidden = hidden;
  $("forth").textContent = isRun ? "Step" : "›";
  if (!isRun) {
    $("at").max = String(model.times.length - 1);
  }
  // A mesh alone has nothing to play.
  document.querySelector("footer").hidden = $("moment").hidden = model.times?.length === 1;
  $("pace").value = String(isRun ? PACES.length - 1 : PLAY.indexOf(15));
  stage.setMap(model.maps[$("map").value]);
  fieldChosen();
  showStatus();
  restyle();
  ask({ metrics: model.metrics.length > 0 && !model.times, pick: -1, ready: true });
}

/** A number that can be set while the run goes on. */
function dial({ name, about, unit }, place) {
  const line = document.createElement("label");
  const input = document.createElement("input");
  input.spellcheck = false;
  input.id = `dial-${place}`;
  input.addEventListener("change", () => {
    const value = Number(input.value);
    if (input.value.trim() !== "" && Number.isFinite(value)) ask({ set: [place, value] });
    else showDials();
  });
  line.title = about;
  line.append(name, input, unit);
  return line;
}

function showDials() {
  document.querySelectorAll("#dials input").forEach((input, i) => {
    // More digits than somebody would write are none of a setting's.
    if (document.activeElement !== input) input.value = String(Number((status.dials[i] ?? NaN).toPrecision(12)));
    input.disabled = Boolean(status.over);
  });
}

function options(select, all, chosen) {
  select.replaceChildren(...all.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

// --- colors

function fieldChosen() {
  const field = model.fields[Number($("field").value)];
  const parts = field?.components ?? 1;
  $("component-line").hidden = parts === 1;
  const names = COMPONENTS[parts] ?? Array.from({ length: parts }, (_, k) => String(k + 1));
  options($("component"), [["-1", "length"], ...names.map((name, k) => [String(k), name])], "-1");
  wish();
}

function wish() {
  bounds = null;
  ask({ field: Number($("field").value), component: Number($("component").value) });
}

function widen() {
  if (!values) return;
  if ($("range").value === "frame") bounds = null;
  let [low, high] = bounds ?? [Infinity, -Infinity];
  const count = Math.min(values.length, model.skin);
  for (let i = 0; i < count; i++) {
    const x = values[i];
    if (x < low && x > -Infinity) low = x;
    if (x > high && x < Infinity) high = x;
  }
  bounds = [low, high];
}

function range() {
  if ($("range").value === "fixed") return [Number($("low").value), Number($("high").value)];
  if (!bounds || bounds[0] > bounds[1]) return [0, 1];
  const most = Math.max(Math.abs(bounds[0]), Math.abs(bounds[1]));
  return $("map").value === "coolwarm" ? [-most, most] : bounds;
}

function showLegend() {
  const field = model?.fields[Number($("field").value)];
  $("legend").hidden = !field || !values;
  if ($("legend").hidden) return;
  const [low, high] = range();
  stage.setRange(low, high);
  const fixed = $("range").value === "fixed";
  for (const [id, x] of [["low", low], ["high", high]]) {
    if (!fixed && document.activeElement !== $(id)) $(id).value = short(x, digitsOf(low, high));
  }
  const component = $("component-line").hidden ? "" : $("component").selectedOptions[0].text;
  const label = component ? `${field.label}, ${component}` : field.label;
  const key = [label, low, high, $("map").value].join(" ");
  if (key === seen) return;
  seen = key;
  $("legend-label").textContent = label;
  const ticks = [1, 0.75, 0.5, 0.25, 0].map((t) => {
    const item = document.createElement("li");
    // What is 0 but for rounding is 0.
    const x = low + t * (high - low);
    item.textContent = short(Math.abs(x) < 1e-9 * (high - low) ? 0 : x, digitsOf(low, high));
    return item;
  });
  $("legend-ticks").replaceChildren(...ticks);
  const pen = $("legend-bar").getContext("2d");
  const colors = model.maps[$("map").value];
  for (let y = 0; y < 180; y++) {
    const i = 3 * Math.round(255 * (1 - y / 179));
    pen.fillStyle = `rgb(${colors[i]} ${colors[i + 1]} ${colors[i + 2]})`;
    pen.fillRect(0, y, 14, 1);
  }
}

// --- where the run stands

function showStatus() {
  showDials();
  const isRun = !model?.times;
  const paces = isRun ? PACES : PLAY;
  $("pause").textContent = isRun ? (status.paused ? "Go on" : "Pause") : (playing ? "Pause" : "Play");
  if (isRun) {
    $("pause").disabled = $("forth").disabled = $("pace").disabled = Boolean(status.over);
    if (PACES.includes(status.pace)) $("pace").value = String(PACES.indexOf(status.pace));
    if (status.over) trouble(status.over);
  } else if (document.activeElement !== $("at")) $("at").value = String(status.at);
  const pace = paces[Number($("pace").value)];
  $("pace-label").textContent = isRun
    ? (pace ? `${pace} steps a second at most` : "as fast as it can") : `${pace} states a second`;
}

function showMoment({ step, time, rate }) {
  $("step").textContent = model.times ? `state ${step + 1} of ${model.times.length}` : `step ${step.toLocaleString("en")}`;
  $("time").textContent = `t = ${short(time)} s`;
  $("rate").textContent = !model.times && rate > 0 && !status.paused && !status.over ? `${short(rate < 10 ? rate : Math.round(rate))} steps a second` : "";
}

function showPick({ pick, at, fields }) {
  const place = model.vertices.indexOf(pick);
  if (place < 0 || stage.marked !== place) return;
  $("pick").hidden = false;
  $("pick-name").textContent = `vertex ${pick}`;
  const spot = at ?? [0, 1, 2].map((k) => stage.position.array[3 * place + k] + model.center[k]);
  const rows = [{ name: "place", values: spot }, ...fields];
  $("pick-values").replaceChildren(...rows.map(({ name, values: own }) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.textContent = name;
    row.append(head, ...own.slice(0, 9).map((x) => {
      const cell = document.createElement("td");
      cell.textContent = typeof x === "number" ? short(x) : x;
      return cell;
    }));
    return row;
  }));
}

function showTable(rows) {
  $("table").hidden = false;
  $("rows").replaceChildren(...rows.map((cells, i) => {
    const row = document.createElement("tr");
    row.append(...cells.map((text) => {
      const cell = document.createElement(i === 0 ? "th" : "td");
      cell.textContent = text;
      return cell;
    }));
    return row;
  }));
}

function unpick() {
  $("pick").hidden = true;
  stage.setMark(-1);
  ask({ pick: -1 });
}

// --- controls

const on = (id, event, act) => $(id).addEventListener(event, act);

function pause() {
  if (!model?.times) return ask({ pause: !status.paused });
  playing = !playing;
  if (playing && status.at === model.times.length - 1) ask({ at: 0 });
  showStatus();
}

function go(by) {
  if (!model?.times) return by > 0 && ask({ step: 1 });
  playing = false;
  ask({ at: Math.min(Math.max(status.at + by, 0), model.times.length - 1) });
  showStatus();
}

function cut() {
  const axis = $("cut").value;
  $("cut-line").hidden = axis === "";
  ask({ inside: axis !== "" && model.tets.length > 0 });
  stage.setCut(axis === "" ? null : { axis: Number(axis), at: Number($("cut-at").value), flip: $("cut-flip").checked });
}

function restyle() {
  const style = getComputedStyle(document.documentElement);
  const isDark = style.colorScheme === "dark";
  stage.setWires(isDark ? 0xffffff : 0x101820);
  plots?.draw({ line: style.getPropertyValue("--line"), mark: style.getPropertyValue("--mark") });
}

on("pause", "click", pause);
on("forth", "click", () => go(1));
on("back", "click", () => go(-1));
on("pace", "input", () => {
  if (!model.times) ask({ pace: PACES[Number($("pace").value)] });
  status.pace = PACES[Number($("pace").value)];
  showStatus();
});
on("at", "input", () => { playing = false; ask({ at: Number($("at").value) }); showStatus(); });
on("field", "change", fieldChosen);
on("component", "change", wish);
on("map", "change", () => { stage.setMap(model.maps[$("map").value]); showLegend(); });
on("range", "change", () => { bounds = null; widen(); showLegend(); });
for (const id of ["low", "high"]) {
  on(id, "change", () => {
    if (![$("low").value, $("high").value].every((text) => text.trim() !== "" && Number.isFinite(Number(text)))) return;
    $("range").value = "fixed";
    showLegend();
  });
}
on("wires", "change", () => { stage.wires.visible = $("wires").checked || stage.showsLines; stage.touch(); });
on("surface", "change", () => { stage.faces.visible = $("surface").checked; stage.touch(); });
on("props", "change", () => { stage.props.visible = $("props").checked; stage.touch(); });
for (const [id, event] of [["cut", "change"], ["cut-at", "input"], ["cut-flip", "change"]]) on(id, event, cut);
on("home", "click", () => stage.home());
on("theme", "click", () => {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
  document.documentElement.dataset.theme = isDark ? "light" : "dark";
  restyle();
});
on("unpick", "click", unpick);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);

let down = null;
on("scene", "pointerdown", (event) => { down = [event.offsetX, event.offsetY]; });
on("scene", "pointerup", (event) => {
  if (!model || !down || event.button !== 0 || Math.hypot(event.offsetX - down[0], event.offsetY - down[1]) > 3) return;
  const place = stage.under(event.offsetX, event.offsetY);
  if (place < 0) return unpick();
  stage.setMark(place);
  ask({ pick: model.vertices[place] });
});
addEventListener("keydown", (event) => {
  if (/INPUT|SELECT|BUTTON/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
  const acts = {
    " ": pause, ArrowRight: () => go(1), ArrowLeft: () => go(-1), r: () => stage.home(), w: () => $("wires").click(), Escape: unpick,
  };
  const act = acts[event.key];
  if (act) { event.preventDefault(); act(); }
});

// --- frames

let [counted, since] = [0, performance.now()];

function draw(now) {
  requestAnimationFrame(draw);
  if (!model) return;
  const frame = pending;
  if (frame) {
    pending = null;
    // The next one may be made while this one is drawn.
    ask({ ready: true });
    values = frame.values;
    stage.apply(frame);
    // A frame of a field that was chosen before would spoil the range.
    if (frame.field === Number($("field").value) && (frame.component === Number($("component").value) || $("component-line").hidden)) {
      widen();
    }
    showLegend();
    showMoment(frame);
    if (plots.now === null) plots.push(frame.time, frame.metrics);
    else plots.now = frame.time;
    restyle();
    Object.assign(shown, { frames: shown.frames + 1, step: frame.step, time: frame.time });
    counted++;
  }
  if (playing && now >= nextPlay && (frame || nextPlay === 0 || now > nextPlay + 1000)) {
    nextPlay = now + 1000 / PLAY[Number($("pace").value)] - 8;
    ask({ at: (status.at + 1) % model.times.length });
  }
  stage.draw();
  if (now - since > 1000) {
    shown.fps = 1000 * counted / (now - since);
    $("drawn").textContent = counted ? `${shown.fps.toFixed(0)} frames a second` : "";
    [counted, since] = [0, now];
  }
}

connect();
requestAnimationFrame(draw);
