// Controls of a scene. k3d calls this with `K3DInstance`, whose customData `picture.py` filled.
const scene = K3DInstance.parameters.customData;
const world = K3DInstance.getWorld();
const rods = world.ObjectsListJson[scene.rods];
const root = document.documentElement;
const target = world.targetDOMNode;

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}
function choice(id, words, names) {
  const select = make("select", { id }, ...names.map((name, k) => new Option(name, String(k))));
  return { select, label: make("label", { hidden: names.length < 2 }, words, " ", select) };
}

// --- what is seen around the picture ----------------------------------------------------------------
const field = choice("field", "colour", [...scene.fields.map((f) => f.name), "one colour"]);
const shape = choice("case", "shape", scene.cases.map((c) => c.name));
const play = make("button", { id: "play", type: "button" });
const slider = make("input", { id: "time", type: "range", step: "any", ariaLabel: scene.parameter });
const clock = make("output", { id: "clock" });
const home = make("button", { id: "home", type: "button", textContent: "Reset view" });
const traces = make("input", { id: "traces", type: "checkbox", checked: true });
const bar = make("div", { id: "bar" });
const ticks = make("div", { id: "ticks" });
const quantity = make("div", { id: "quantity" });
const legend = make("div", { id: "legend", hidden: !scene.fields.length }, quantity, bar, ticks);
target.before(make("header", {}, make("span", { id: "title", textContent: scene.title }),
  make("span", { id: "note", textContent: scene.note }), legend));
target.after(make("form", { onsubmit: () => false }, play, slider, clock, shape.label, field.label,
  make("label", { hidden: scene.traces === null }, traces, " traces"), home));
target.setAttribute("role", "img");
target.setAttribute("aria-label", `${scene.title}, in space`);

// --- time --------------------------------------------------------------------------------------------
// k3d's time is the number of a shape.
let first = 0, last = scene.times.length - 1, now = 0, playing = false, left = 0, stamp = 0, busy = false;
const digits = (() => {
  const steps = scene.times.slice(1).map((t, k) => Math.abs(t - scene.times[k])).filter((d) => d > 0);
  return steps.length ? Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(Math.max(...steps))))) : 3;
})();
function show(at) {
  now = at;
  slider.value = String(now);
  const k = Math.min(Math.floor(now), last);
  const t = scene.times[k] + (now - k) * (scene.times[Math.min(k + 1, last)] - scene.times[k]);
  clock.textContent = `${scene.parameter} = ${t.toFixed(digits)} ${scene.unit}`.trim();
  clock.hidden = scene.cases.length > 0;
  if (busy) return;
  busy = true;
  K3DInstance.setTime(now).then(() => { busy = false; });
}
function range(from, to) {
  [first, last] = [from, to];
  Object.assign(slider, { min: String(first), max: String(last), disabled: first === last });
  play.disabled = slider.disabled;
  show(first);
}
// A mode goes on, a run is played once: from where it stands, through its end if that is ahead.
function start(length) {
  playing = true;
  left = length;
  stamp = performance.now();
  requestAnimationFrame(tick);
  mark();
}
function mark() {
  play.textContent = playing ? "❚❚" : "▶";
  play.setAttribute("aria-label", playing ? "Pause" : "Play");
}
function tick(time) {
  if (!playing) return;
  const span = last - first;
  const seconds = scene.cases.length ? 1.5 : Math.max(4, Math.min(12, span / 15));
  const step = Math.min((span * Math.min(Math.max(time - stamp, 0), 100)) / (1000 * seconds), left);
  stamp = time;
  left -= step;
  let at = now + step;
  if (left > 0 && at > last) at -= span;
  if (left <= 0) { playing = false; mark(); }
  show(Math.min(at, last));
  requestAnimationFrame(tick);
}
const onwards = () => (scene.cases.length ? Infinity : now < last ? last - now : last - first);
play.addEventListener("click", () => {
  if (playing) { playing = false; mark(); return; }
  if (now >= last) show(first);
  start(onwards());
});
slider.addEventListener("input", () => { playing = false; mark(); show(Number(slider.value)); });
shape.select.addEventListener("change", () => {
  const chosen = scene.cases[shape.select.value];
  range(chosen.first, chosen.last);
});

// --- colours -------------------------------------------------------------------------------------------
const series = [rods.attribute, ...rods.custom_data.fields];
const map = rods.color_map;
// In the dark, low values are lighter, so that they differ from the background.
const mapInTheDark = {
  data: map.data.map((c, k) => (k % 4 ? c + 0.4 * (1 - map.data[k - (k % 4)]) * (1 - c) : c)), shape: map.shape,
};
const shades = () => (root.dataset.theme === "dark" ? mapInTheDark : map);
const grey = [16, 8, 0].map((shift) => ((scene.plain >> shift) & 255) / 255);
const flat = { data: new Float32Array([0, ...grey, 1, ...grey]), shape: [8] };
const css = ({ data }, k) => `rgb(${[1, 2, 3].map((c) => Math.round(255 * data[4 * k + c]))}) ${100 * data[4 * k]}%`;
const stations = map.data.length / 4;
function colour() {
  const chosen = scene.fields[field.select.value];
  legend.style.visibility = chosen ? "visible" : "hidden";
  bar.style.background = `linear-gradient(to right, ${Array.from({ length: stations }, (_, k) => css(shades(), k))})`;
  if (chosen) {
    rods.attribute = series[field.select.value];
    rods.color_range = chosen.range;
    quantity.textContent = chosen.unit ? `${chosen.name} [${chosen.unit}]` : chosen.name;
    const [low, high] = chosen.range;
    const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((s) => s * power >= rough) * power;
    ticks.replaceChildren();
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
      const tick = make("span", { textContent: String(Number((k * step).toPrecision(6))) });
      tick.style.left = `${(100 * (k * step - low)) / (high - low)}%`;
      ticks.append(tick);
    }
  }
  if (!scene.fields.length) return K3DInstance.setTime(now);
  rods.color_map = chosen ? shades() : flat;
  return K3DInstance.reload(rods, { color_map: rods.color_map }, true).then(() => K3DInstance.setTime(now));
}
field.select.addEventListener("change", colour);
traces.addEventListener("change", () => {
  const lines = world.ObjectsListJson[scene.traces];
  lines.visible = traces.checked;
  K3DInstance.reload(lines, null, true).then(() => K3DInstance.render(true));
});

// --- the camera is as near as the outermost points allow ------------------------------------------------
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2;
let moved = false;
function fit() {
  moved = false;
  const { from, up, hull } = scene;
  const side = cross(up, from), length = Math.hypot(...side);
  const right = side.map((x) => x / length), above = cross(from, right);
  const slope = 0.92 * Math.tan((world.camera.fov * Math.PI) / 360);
  const aspect = target.clientWidth / target.clientHeight;
  // In the camera's axes, moved until the points are in the middle of the picture.
  const axes = [right, above, from], points = hull.map((x) => axes.map((axis) => dot(x, axis)));
  const centre = [0, 1, 2].map((k) => middle(points.map((p) => p[k])));
  let distance;
  for (let round = 0; round < 6; round++) {
    distance = Math.max(...points.map((p) => p[2] - centre[2]
      + Math.max(Math.abs(p[0] - centre[0]) / aspect, Math.abs(p[1] - centre[1])) / slope));
    for (const k of [0, 1]) {
      const seen = points.map((p) => (p[k] - centre[k]) / Math.max(distance + centre[2] - p[2], 0.1 * distance));
      centre[k] += 0.8 * distance * middle(seen);
    }
  }
  const at = (z) => [0, 1, 2].map((k) => right[k] * centre[0] + above[k] * centre[1] + from[k] * z);
  K3DInstance.setCamera([...at(centre[2] + distance), ...at(centre[2]), ...up]);
  K3DInstance.render(true);
}
home.addEventListener("click", fit);
target.addEventListener("pointerdown", () => { moved = true; });
target.addEventListener("wheel", () => { moved = true; });
K3DInstance.on(K3DInstance.events.RESIZED, () => { if (!moved) fit(); });

// --- light and dark --------------------------------------------------------------------------------------
function theme(name) {
  root.dataset.theme = name;
  K3DInstance.setClearColor(name === "dark" ? 0x14181e : 0xffffff);
  K3DInstance.setLabelColor(name === "dark" ? 0xdfe5eb : 0x1f2328);
  return colour();
}
const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
// A page that shows this one in a frame may tell its own theme.
addEventListener("message", ({ data }) => { if (data === "light" || data === "dark") theme(data); });

// Mostly from where one looks, so that colours are those of the bar.
world.headLight.intensity = world.keyLight.intensity = 0.42 * Math.PI;

// --- the start: run.html?at=0.3 opens at that part of the run ----------------------------------------------
if (scene.cases.length) range(scene.cases[0].first, scene.cases[0].last);
else range(0, last);
const at = Math.min(Math.max(Number(new URLSearchParams(location.search).get("at")) || 0, 0), 1);
show(first + at * (last - first));
mark();
theme(dark.matches ? "dark" : "light").then(() => {
  fit();
  root.dataset.ready = "yes";
  if (matchMedia("(prefers-reduced-motion: reduce)").matches || first === last) return;
  // Once, when it comes into view: all of the run, to where it began.
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    start(scene.cases.length ? Infinity : last - first);
  }, { threshold: 0.5 });
  seen.observe(target);
});
