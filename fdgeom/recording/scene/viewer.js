// Rods in space: rings of vertices round the nodes, moved with the time, coloured by a field.
const text = (id) => document.getElementById(id).textContent;
const module = (source) => URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
const core = module(text("three-core"));
const three = module(text("three-module").replaceAll('"./three.core.min.js"', JSON.stringify(core)));
const THREE = await import(three);
const orbit = module(text("three-orbit").replace("from 'three'", `from "${three}"`));
const { OrbitControls } = await import(orbit);

const data = JSON.parse(text("data"));
const $ = (id) => document.getElementById(id);

// --- numbers: integers of 16 bits between two bounds ----------------------------------------------
function unpack({ base64, low, high }) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const scale = (high - low) / 65535;
  return Float32Array.from(new Uint16Array(bytes.buffer), (n) => low + scale * n);
}
const nodes = data.nodes;
const frames = data.times.length;
const positions = unpack(data.positions);
const orientations = data.orientations ? unpack(data.orientations) : null;
const fields = Object.fromEntries(
  Object.entries(data.fields).map(([name, packed]) => [name, { ...packed, values: unpack(packed) }]),
);

// --- colours: viridis by nine stations --------------------------------------------------------------
const STATIONS = ["440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"];
const RGB = STATIONS.map((hex) => new THREE.Color("#" + hex));
$("bar").style.background = `linear-gradient(to right, ${STATIONS.map((h) => "#" + h)})`;
const colour = new THREE.Color();
function shade(x) {
  const at = Math.min(Math.max(x, 0), 1) * (RGB.length - 1);
  const k = Math.min(Math.floor(at), RGB.length - 2);
  return colour.lerpColors(RGB[k], RGB[k + 1], at - k);
}

// --- the outline of a section: points and normals along its two axes -----------------------------------
function outline() {
  if (data.outline === "rectangle") {
    const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]];
    const normals = [[0, -1], [1, 0], [0, 1], [-1, 0]];
    return corners.flatMap((c, k) => [[c, normals[k]], [corners[(k + 1) % 4], normals[k]]]);
  }
  const count = 20;
  return Array.from({ length: count + 1 }, (_, k) => {
    const p = [Math.cos((2 * Math.PI * k) / count), Math.sin((2 * Math.PI * k) / count)];
    return [p, p];
  });
}
const ring = outline();
// Edges of a rectangle are pairs; round a circle each point is joined to the next.
const edges = data.outline === "rectangle" ? [0, 2, 4, 6] : ring.slice(1).map((_, k) => k);

class Rod {
  constructor([first, last], size) {
    Object.assign(this, { first, last, size, count: last - first });
    const vertices = this.count * ring.length;
    this.caps = 2 * (ring.length + 1);
    this.geometry = new THREE.BufferGeometry();
    for (const name of ["position", "normal", "color"]) {
      const values = new Float32Array(3 * (vertices + this.caps));
      this.geometry.setAttribute(name, new THREE.BufferAttribute(values, 3));
      this[name] = values;
    }
    const index = [];
    for (let i = 0; i + 1 < this.count; i++) {
      for (const e of edges) {
        const [a, b] = [i * ring.length + e, i * ring.length + e + 1];
        index.push(a, b, b + ring.length, a, b + ring.length, a + ring.length);
      }
    }
    for (const end of [0, 1]) {
      const start = vertices + end * (ring.length + 1);
      for (const e of edges) index.push(start, start + 1 + e, start + 2 + e);
    }
    this.geometry.setIndex(index);
    const material = new THREE.MeshStandardMaterial({
      vertexColors: true, roughness: 0.65, side: THREE.DoubleSide,
    });
    this.mesh = new THREE.Mesh(this.geometry, material);
    this.mesh.frustumCulled = false;
  }

  move(points, frames, tint, thickness) {
    const [w, h] = this.size.map((side) => (thickness * side) / 2);
    const put = (v, i, [p, n], along = 0) => {
      const { a, b } = frames[i];
      const [x, y] = [p[0] * w, p[1] * h];
      const shade = tint[i];
      const t = cross(a, b);
      for (let c = 0; c < 3; c++) {
        this.position[3 * v + c] = points[i][c] + x * a[c] + y * b[c];
        this.normal[3 * v + c] = along ? along * t[c] : n[0] * a[c] + n[1] * b[c];
        this.color[3 * v + c] = shade[c];
      }
    };
    let v = 0;
    for (let i = this.first; i < this.last; i++) for (const corner of ring) put(v++, i, corner);
    for (const [i, along] of [[this.first, -1], [this.last - 1, 1]]) {
      put(v++, i, [[0, 0], [0, 0]], along);
      for (const corner of ring) put(v++, i, corner, along);
    }
    for (const name of ["position", "normal", "color"]) this.geometry.attributes[name].needsUpdate = true;
  }
}

// --- where nodes and directors are between two snapshots ------------------------------------------------
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => { const n = Math.hypot(...a) || 1; return a.map((x) => x / n); };

function turned([w, x, y, z], axis) {
  const rows = [
    [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
    [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
    [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
  ];
  return rows[axis];
}

function mixed(array, width, k, part, i) {
  const a = (k * nodes + i) * width;
  const b = (Math.min(k + 1, frames - 1) * nodes + i) * width;
  return Array.from({ length: width }, (_, c) => (1 - part) * array[a + c] + part * array[b + c]);
}

function directors(k, part, points) {
  if (orientations) {
    const [first, second] = [0, 1, 2].filter((a) => a !== data.axis);
    return points.map((_, i) => {
      const q = unit(mixed(orientations, 4, k, part, i));
      return { a: turned(q, first), b: turned(q, second) };
    });
  }
  // No directors: carried along the curve without twist.
  let a = null;
  return points.map((p, i) => {
    const next = points[Math.min(i + 1, nodes - 1)], before = points[Math.max(i - 1, 0)];
    const t = unit(next.map((x, c) => x - before[c]));
    if (!a) a = Math.abs(t[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0];
    const along = a[0] * t[0] + a[1] * t[1] + a[2] * t[2];
    a = unit(a.map((x, c) => x - along * t[c]));
    return { a, b: cross(t, a) };
  });
}

// --- the scene ----------------------------------------------------------------------------------------------
const view = $("view");
let renderer;
try {
  renderer = new THREE.WebGLRenderer({ antialias: true });
} catch (failure) {
  $("words").textContent = "This browser shows no WebGL, which the picture needs.";
  throw failure;
}
view.append(renderer.domElement);
renderer.domElement.setAttribute("aria-hidden", "true");
const scene = new THREE.Scene();
const bounds = new THREE.Box3();
const point = new THREE.Vector3();
for (let k = 0; k < positions.length; k += 3) bounds.expandByPoint(point.fromArray(positions, k));
const extent = bounds.getSize(new THREE.Vector3());
const centre = bounds.getCenter(new THREE.Vector3());
const size = Math.max(extent.length(), 1e-30);
const camera = new THREE.PerspectiveCamera(35, 1, size / 1000, size * 100);
const controls = new OrbitControls(camera, renderer.domElement);
scene.add(new THREE.HemisphereLight(0xffffff, 0x9999aa, 2.6));
const lamp = new THREE.DirectionalLight(0xffffff, 2.2);
camera.add(lamp);
lamp.position.set(0.4, 0.8, 1);
scene.add(camera);
const rods = data.parts.map((part, k) => new Rod(part, data.sizes[k]));
for (const rod of rods) scene.add(rod.mesh);
const frame = new THREE.Box3Helper(bounds, 0x9aa0a6);
scene.add(frame);
// Where the rods are at other times: faint lines, which tell the motion before it is played.
const traces = new THREE.Group();
const faint = new THREE.LineBasicMaterial({ color: 0x9aa0a6, transparent: true, opacity: 0.55 });
const shown = Math.min(frames, 9);
for (let k = 0; k < shown && frames > 1; k++) {
  const at = Math.round((k * (frames - 1)) / (shown - 1));
  for (const [first, last] of data.parts) {
    const piece = positions.slice(3 * (at * nodes + first), 3 * (at * nodes + last));
    const line = new THREE.BufferGeometry();
    line.setAttribute("position", new THREE.BufferAttribute(piece, 3));
    traces.add(new THREE.Line(line, faint));
  }
}
scene.add(traces);
const letters = ["x", "y", "z"].map((name) => {
  const label = document.createElement("span");
  label.className = "axis";
  label.textContent = name;
  view.append(label);
  return label;
});
const short = (x) => String(Number(x.toPrecision(2)));
const span = (x) => (x < 1e-9 * size ? "0" : short(x));
$("box").textContent =
  `box ${span(extent.x)} × ${span(extent.y)} × ${span(extent.z)}` + (data.length ? ` ${data.length}` : "");

function home() {
  const flat = ["x", "y", "z"].find((axis) => extent[axis] < 1e-3 * size);
  const from = { x: [1, 0, 0], y: [0, -1, 0], z: [0, 0, 1] }[flat] || [0.75, -1.1, 0.5];
  camera.up.set(0, flat === "z" ? 1 : 0, flat === "z" ? 0 : 1);
  controls.target.copy(centre);
  const direction = new THREE.Vector3(...from).normalize();
  // As near as all corners of the box allow.
  let distance = 3 * size;
  for (let round = 0; round < 6; round++) {
    camera.position.copy(centre).addScaledVector(direction, distance);
    controls.update();
    camera.updateMatrixWorld();
    let most = 0;
    for (let corner = 0; corner < 8; corner++) {
      point.set(...["x", "y", "z"].map((axis, k) => ((corner >> k) & 1 ? bounds.max : bounds.min)[axis]));
      point.project(camera);
      most = Math.max(most, Math.abs(point.x), Math.abs(point.y));
    }
    distance *= most / 0.88;
  }
}

let now = 0;
function show() {
  const k = Math.min(Math.floor(now), frames - 1);
  const part = now - k;
  const points = Array.from({ length: nodes }, (_, i) => mixed(positions, 3, k, part, i));
  const frames3 = directors(k, part, points);
  const chosen = fields[$("field").value];
  const plain = new THREE.Color("#3b78b8");
  const tint = points.map(() => [plain.r, plain.g, plain.b]);
  if (chosen) {
    const range = chosen.high - chosen.low || 1;
    const pieces = chosen.values.length / frames;
    let piece = 0;
    for (const [first, last] of data.parts) {
      const own = [];
      for (let p = 0; p + 1 < last - first; p++, piece++) {
        const a = chosen.values[k * pieces + piece];
        const b = chosen.values[Math.min(k + 1, frames - 1) * pieces + piece];
        own.push((1 - part) * a + part * b);
      }
      for (let i = first; i < last; i++) {
        // A node shows the mean of the pieces beside it.
        const before = own[Math.max(i - first - 1, 0)], after = own[Math.min(i - first, own.length - 1)];
        const c = shade(((before + after) / 2 - chosen.low) / range);
        tint[i] = [c.r, c.g, c.b];
      }
    }
  }
  const thickness = Number($("thick").value) || 1;
  for (const rod of rods) rod.move(points, frames3, tint, thickness);
  const t = (1 - part) * data.times[k] + part * data.times[Math.min(k + 1, frames - 1)];
  $("clock").textContent = `${data.parameter} = ${t.toFixed(data.digits)}${data.unit}`;
  $("legend").style.visibility = chosen ? "visible" : "hidden";
  if (chosen) {
    $("low").textContent = Math.abs(chosen.low) < 1e-3 * chosen.high ? "0" : short(chosen.low);
    $("high").textContent = short(chosen.high);
  }
  draw();
}

function draw() {
  renderer.render(scene, camera);
  const corner = bounds.min;
  letters.forEach((label, axis) => {
    const key = ["x", "y", "z"][axis];
    point.copy(corner);
    point[key] = bounds.max[key] + 0.03 * size;
    point.project(camera);
    label.hidden = extent[key] < 1e-9 * size;
    label.style.left = `${(50 * (point.x + 1)).toFixed(2)}%`;
    label.style.top = `${(50 * (1 - point.y)).toFixed(2)}%`;
  });
}

function fit() {
  const { clientWidth: width, clientHeight: height } = view;
  if (!width || !height) return;
  renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
  renderer.setSize(width, height);
  camera.aspect = width / height;
  camera.updateProjectionMatrix();
  draw();
}

// --- what the reader moves --------------------------------------------------------------------------------------
const slider = $("time");
slider.max = String(frames - 1);
slider.step = "any";
let playing = false, last = 0;
const seconds = Math.max(4, Math.min(12, frames / 15));
function tick(stamp) {
  if (!playing) return;
  now += ((frames - 1) * Math.min(stamp - last, 100)) / (1000 * seconds);
  last = stamp;
  if (now > frames - 1) now = 0;
  slider.value = String(now);
  show();
  requestAnimationFrame(tick);
}
$("play").addEventListener("click", () => {
  playing = !playing;
  $("play").textContent = playing ? "❚❚" : "▶";
  $("play").setAttribute("aria-label", playing ? "Pause" : "Play");
  last = performance.now();
  if (playing) requestAnimationFrame(tick);
});
slider.addEventListener("input", () => { now = Number(slider.value); show(); });
$("field").addEventListener("change", show);
$("thick").addEventListener("input", show);
$("home").addEventListener("click", () => { home(); draw(); });
$("trace").addEventListener("change", () => { traces.visible = $("trace").checked; draw(); });
controls.addEventListener("change", draw);
for (const name of [...Object.keys(fields), "one colour"]) $("field").add(new Option(name.replaceAll("_", " "), name));
$("thick").value = String(data.thickness);
slider.disabled = $("play").disabled = $("trace").disabled = frames < 2;
// run.html?at=0.3 opens at that part of the run.
const opened = Number(new URLSearchParams(location.search).get("at"));
if (opened > 0 && opened <= 1) slider.value = String((now = opened * (frames - 1)));

function theme(name) {
  document.documentElement.dataset.theme = name;
  const back = getComputedStyle(document.documentElement).getPropertyValue("--back").trim();
  scene.background = new THREE.Color(back);
  draw();
}
const prefers = matchMedia("(prefers-color-scheme: dark)");
prefers.addEventListener("change", () => theme(prefers.matches ? "dark" : "light"));
// A page that shows this one in a frame may tell its own theme.
addEventListener("message", ({ data: sent }) => { if (sent === "light" || sent === "dark") theme(sent); });
new ResizeObserver(fit).observe(view);
fit();
home();
theme(prefers.matches ? "dark" : "light");
show();
document.documentElement.dataset.ready = "yes";
