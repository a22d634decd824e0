"use strict";
// Draws a recorded trace. All of it is in the page: columns of numbers in base 64, texts in JSON.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const column = (type, text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new type(bytes.buffer);
  };
  const begin = column(Float64Array, data.begin);
  const duration = column(Float64Array, data.duration);
  const own = column(Float64Array, data.self);
  const bytes = column(Float64Array, data.bytes);
  const name = column(Int32Array, data.name);
  const parent = column(Int32Array, data.parent);
  const link = column(Int32Array, data.link);
  const note = column(Int32Array, data.note);
  const depth = column(Uint16Array, data.depth);
  const thread = column(Uint16Array, data.thread);
  const kind = column(Uint8Array, data.kind);
  const memoryAt = column(Float64Array, data.memory_at);
  const memoryTotal = column(Float64Array, data.memory_total);
  const count = begin.length;
  const ROW = 17, GAP = 22, AXIS = 20;

  const timeText = (us) =>
    us >= 1e6 ? (us / 1e6).toFixed(3) + " s" : us >= 1e3 ? (us / 1e3).toFixed(3) + " ms" : us.toFixed(3) + " us";
  const sizeText = (size) => {
    for (const [unit, scale] of [["GB", 2 ** 30], ["MB", 2 ** 20], ["KB", 2 ** 10]])
      if (Math.abs(size) >= scale) return (size / scale).toFixed(2) + " " + unit;
    return size + " B";
  };
  const colors = data.names.map((text, i) => {
    let hash = 7;
    for (const letter of text) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
    return `hsl(${hash % 360} 55% ${data.user[i] ? 72 : 62}%)`;
  });

  // --- lanes: one for each thread, a row for each depth ---

  const lanes = data.threads.map((text, number) => ({ text, number, rows: [], top: 0 }));
  for (let i = 0; i < count; ++i) {
    const rows = lanes[thread[i]].rows;
    while (rows.length <= depth[i]) rows.push([]);
    rows[depth[i]].push(i);
  }
  let height = AXIS;
  for (const lane of lanes) {
    lane.top = height;
    height += GAP + lane.rows.length * ROW;
  }
  const whole = { from: 0, to: Math.max(data.length, 1e-3) };
  const view = { from: whole.from, to: whole.to };
  let matches = null, matched = [], place = -1, selected = -1;

  const context = (canvas) => {
    const scale = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    const width = Math.max(box.width, 100), tall = Number(canvas.dataset.height || canvas.getAttribute("height"));
    canvas.dataset.height = tall;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(tall * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(tall * scale);
      canvas.style.height = tall + "px";
    }
    const drawing = canvas.getContext("2d");
    drawing.setTransform(scale, 0, 0, scale, 0, 0);
    drawing.clearRect(0, 0, width, tall);
    drawing.font = "11px ui-monospace, monospace";
    drawing.textBaseline = "middle";
    return { drawing, width, tall };
  };
  const timeline = document.getElementById("timeline");
  const memory = document.getElementById("memory");
  timeline.dataset.height = height;
  if (memoryAt.length === 0) memory.style.display = "none";
  let width = 100;
  const x = (us) => ((us - view.from) / (view.to - view.from)) * width;
  const at = (pixel) => view.from + (pixel / width) * (view.to - view.from);

  // The first event of a row that ends after a time; events of a row do not overlap.
  const first = (row, us) => {
    let low = 0, high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (begin[row[middle]] + duration[row[middle]] < us) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  const drawRow = (drawing, row, y) => {
    let drawn = 0, last = -1;
    for (let k = first(row, view.from); k < row.length; ++k) {
      const i = row[k];
      if (begin[i] > view.to) break;
      const left = Math.max(x(begin[i]), 0), right = Math.min(x(begin[i] + duration[i]), width);
      const faint = matches && !matches[name[i]];
      // Of events within one pixel the first stands for all, unless another is looked for.
      if (right - left < 0.7 && Math.floor(left) === last && !(matches && !faint)) continue;
      last = Math.floor(left);
      drawing.globalAlpha = faint ? 0.18 : 1;
      drawing.fillStyle = colors[name[i]];
      drawing.fillRect(left, y, Math.max(right - left, 0.7), ROW - 2);
      if (i === selected) drawing.strokeRect(left, y, Math.max(right - left, 1), ROW - 2);
      ++drawn;
      if (right - left > 34) {
        drawing.fillStyle = "#111";
        const room = Math.floor((right - left - 6) / 6.7), text = data.names[name[i]];
        drawing.fillText(text.length > room ? text.slice(0, Math.max(room - 1, 0)) + "\u2026" : text, left + 3, y + ROW / 2 - 1);
      }
    }
    drawing.globalAlpha = 1;
    return drawn;
  };

  const rowOf = (i) => lanes[thread[i]].top + GAP + depth[i] * ROW + ROW / 2;
  const drawArrow = (drawing, from, to) => {
    drawing.strokeStyle = "#c00";
    drawing.beginPath();
    const x0 = x(begin[from]), x1 = x(begin[to]);
    drawing.moveTo(x0, rowOf(from));
    drawing.bezierCurveTo(x0 + 40, rowOf(from) - 30, x1 - 40, rowOf(to) - 30, x1, rowOf(to));
    drawing.stroke();
    drawing.strokeStyle = "#000";
  };

  const drawAxis = (drawing) => {
    const span = view.to - view.from, step = 10 ** Math.floor(Math.log10(span / 4));
    const wide = span / step > 12 ? step * 5 : step;
    drawing.fillStyle = "#555";
    for (let t = Math.ceil(view.from / wide) * wide; t < view.to; t += wide) {
      drawing.fillRect(x(t), 0, 1, 5);
      drawing.fillText(timeText(t), x(t) + 3, 10);
    }
  };

  let slices = 0, asked = false;
  const draw = () => {
    asked = false;
    const { drawing, width: wide } = context(timeline);
    width = wide;
    slices = 0;
    drawAxis(drawing);
    for (const lane of lanes) {
      drawing.fillStyle = "#f4f4f4";
      drawing.fillRect(0, lane.top, width, GAP - 3);
      drawing.fillStyle = "#333";
      drawing.fillText(lane.text, 6, lane.top + GAP / 2 - 1);
      lane.rows.forEach((row, level) => (slices += drawRow(drawing, row, lane.top + GAP + level * ROW)));
    }
    if (selected >= 0) {
      if (link[selected] >= 0) drawArrow(drawing, link[selected], selected);
      for (const after of backwards.get(selected) || []) drawArrow(drawing, selected, after);
    }
    drawMemory();
  };
  const redraw = () => {
    if (!asked) {
      asked = true;
      requestAnimationFrame(draw);
    }
  };

  const backwards = new Map();
  for (let i = 0; i < count; ++i)
    if (link[i] >= 0) backwards.set(link[i], [...(backwards.get(link[i]) || []), i]);

  const drawMemory = () => {
    if (memoryAt.length === 0) return;
    const { drawing, tall } = context(memory);
    let low = 0, high = 0;
    for (const size of memoryTotal) {
      low = Math.min(low, size);
      high = Math.max(high, size);
    }
    const y = (size) => tall - 4 - ((size - low) / Math.max(high - low, 1)) * (tall - 20);
    drawing.fillStyle = "#9bc4e8";
    drawing.beginPath();
    drawing.moveTo(0, y(0));
    let level = y(0), pixel = -1;
    for (let k = 0; k < memoryAt.length; ++k) {
      const here = x(memoryAt[k]);
      const next = y(memoryTotal[k]);
      if (here >= 0 && here <= width && (Math.floor(here) !== pixel || next < level)) {
        drawing.lineTo(here, level);
        drawing.lineTo(here, next);
        pixel = Math.floor(here);
      }
      level = next;
      if (here > width) break;
      if (here < 0) drawing.lineTo(0, level);
    }
    drawing.lineTo(width, level);
    drawing.lineTo(width, tall);
    drawing.lineTo(0, tall);
    drawing.fill();
    drawing.fillStyle = "#333";
    drawing.fillText(`memory since the beginning, at most ${sizeText(high)}`, 6, 8);
  };

  // --- moving about ---

  const show = (from, to) => {
    const least = 0.01, span = Math.min(Math.max(to - from, least), whole.to - whole.from);
    view.from = Math.min(Math.max(from, whole.from), whole.to - span);
    view.to = view.from + span;
    redraw();
  };
  const zoom = (factor, pixel) => {
    const center = at(pixel);
    show(center - (center - view.from) * factor, center + (view.to - center) * factor);
  };
  const move = (part) => {
    const by = (view.to - view.from) * part;
    show(view.from + by, view.to + by);
  };
  const eventAt = (px, py) => {
    for (const lane of lanes) {
      const level = Math.floor((py - lane.top - GAP) / ROW);
      if (py < lane.top + GAP || level >= lane.rows.length) continue;
      const row = lane.rows[level], slack = at(1.5) - at(0), us = at(px), k = first(row, us - slack);
      if (k < row.length && begin[row[k]] <= us + slack) return row[k];
    }
    return -1;
  };
  const describe = (i) => {
    const lines = [data.names[name[i]], `${timeText(duration[i])}, in itself ${timeText(own[i])}`];
    lines.push(`from ${timeText(begin[i])}, ${data.kinds[kind[i]]}`);
    const ofDevice = kind[i] === data.device;
    if (bytes[i]) lines.push(`${ofDevice ? "copied" : "memory"} ${sizeText(bytes[i])}`);
    const { shapes, stack } = data.notes[note[i]];
    if (shapes) lines.push(shapes);
    if (link[i] >= 0) lines.push(`${ofDevice ? "asked for by" : "backward of"} ${data.names[name[link[i]]]}`);
    return lines.concat(stack.slice(0, 6)).join("\n");
  };
  const tip = document.getElementById("tip");
  const showTip = (text, event) => {
    tip.style.display = text ? "block" : "none";
    tip.textContent = text;
    tip.style.left = Math.min(event.clientX + 14, window.innerWidth - 300) + "px";
    tip.style.top = event.clientY + 14 + "px";
  };

  let dragged = null;
  timeline.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey) move(Math.sign(event.deltaY) * 0.1);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX);
  }, { passive: false });
  timeline.addEventListener("mousedown", (event) => (dragged = { x: event.offsetX, moved: false }));
  window.addEventListener("mouseup", () => setTimeout(() => (dragged = null)));
  timeline.addEventListener("mousemove", (event) => {
    if (dragged && event.buttons) {
      const by = at(dragged.x) - at(event.offsetX);
      dragged.moved = dragged.moved || Math.abs(event.offsetX - dragged.x) > 2;
      dragged.x = event.offsetX;
      show(view.from + by, view.to + by);
      return;
    }
    const i = eventAt(event.offsetX, event.offsetY);
    showTip(i < 0 ? "" : describe(i), event);
  });
  timeline.addEventListener("mouseleave", (event) => showTip("", event));
  timeline.addEventListener("click", (event) => {
    if (!dragged || !dragged.moved) select(eventAt(event.offsetX, event.offsetY), true);
  });
  const select = (i, zooming) => {
    selected = i;
    if (i >= 0 && zooming) show(begin[i] - duration[i] * 0.1, begin[i] + duration[i] * 1.1);
    redraw();
  };
  window.addEventListener("keydown", (event) => {
    if (event.target.tagName === "INPUT") return;
    const actions = { w: () => zoom(0.7, width / 2), s: () => zoom(1.4, width / 2), a: () => move(-0.2), d: () => move(0.2) };
    if (actions[event.key]) actions[event.key]();
  });
  document.getElementById("whole").addEventListener("click", () => show(whole.from, whole.to));
  window.addEventListener("resize", () => { redraw(); drawFlame(); });

  // --- search ---

  const field = document.getElementById("search"), found = document.getElementById("found");
  const search = (text) => {
    const wanted = text.trim().toLowerCase();
    matches = wanted ? data.names.map((item) => item.toLowerCase().includes(wanted)) : null;
    matched = [];
    place = -1;
    let total = 0;
    if (matches)
      for (let i = 0; i < count; ++i)
        if (matches[name[i]]) {
          matched.push(i);
          total += own[i];
        }
    found.textContent = matches ? `${matched.length} events, ${timeText(total)} in themselves` : "";
    redraw();
  };
  field.addEventListener("input", () => search(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || matched.length === 0) return;
    place = (place + (event.shiftKey ? matched.length - 1 : 1)) % matched.length;
    const i = matched[place], wide = Math.max(duration[i] * 10, (view.to - view.from) / 4);
    selected = i;
    show(begin[i] + duration[i] / 2 - wide / 2, begin[i] + duration[i] / 2 + wide / 2);
  });

  // --- the flame graph: paths of names, summed up ---

  const root = { text: "all", name: -1, time: 0, children: new Map(), up: null };
  const nodes = new Array(count);
  for (let i = 0; i < count && kind[i] !== data.device; ++i) {
    const up = parent[i] >= 0 ? nodes[parent[i]] : root;
    let node = up.children.get(name[i]);
    if (!node) up.children.set(name[i], (node = { text: data.names[name[i]], name: name[i], time: 0, children: new Map(), up }));
    node.time += duration[i];
    nodes[i] = node;
    if (parent[i] < 0) root.time += duration[i];
  }
  const flame = document.getElementById("flame");
  let base = root, boxes = [];
  const levels = (node) => 1 + Math.max(0, ...[...node.children.values()].map(levels));
  flame.dataset.height = Math.min(levels(root), 30) * ROW + 4;
  const drawFlame = () => {
    const { drawing, width: wide } = context(flame);
    boxes = [];
    const box = (node, left, right, level) => {
      if (right - left < 0.7) return;
      boxes.push({ node, left, right, level });
      drawing.fillStyle = node.name < 0 ? "#ddd" : colors[node.name];
      drawing.fillRect(left, level * ROW, right - left - 0.5, ROW - 1);
      drawing.fillStyle = "#111";
      const room = Math.floor((right - left - 6) / 6.7);
      if (room > 3) drawing.fillText(node.text.length > room ? node.text.slice(0, room - 1) + "\u2026" : node.text, left + 3, level * ROW + ROW / 2);
      let from = left;
      for (const child of [...node.children.values()].sort((a, b) => b.time - a.time)) {
        const to = from + (child.time / Math.max(node.time, 1e-9)) * (right - left);
        box(child, from, to, level + 1);
        from = to;
      }
    };
    box(base, 0, wide, 0);
  };
  const boxAt = (event) =>
    boxes.find((b) => event.offsetX >= b.left && event.offsetX < b.right && Math.floor(event.offsetY / ROW) === b.level);
  flame.addEventListener("mousemove", (event) => {
    const hit = boxAt(event);
    showTip(hit ? `${hit.node.text}\n${timeText(hit.node.time)}, ${((100 * hit.node.time) / Math.max(root.time, 1e-9)).toFixed(1)}% of all` : "", event);
  });
  flame.addEventListener("mouseleave", (event) => showTip("", event));
  flame.addEventListener("click", (event) => {
    const hit = boxAt(event);
    if (!hit) return;
    base = hit.node === base ? base.up || root : hit.node;
    drawFlame();
  });

  // --- the table ---

  const table = document.getElementById("costliest");
  const devices = data.rows.some((row) => row[6] > 0);
  const columns = ["name", "self", "total", "average", "calls", "memory"].concat(devices ? ["device"] : []);
  const shown = [(v) => v, timeText, timeText, timeText, (v) => String(v), sizeText, timeText];
  let order = 1, falling = true;
  const fillTable = () => {
    const rows = [...data.rows].sort((a, b) => (a[order] < b[order] ? -1 : a[order] > b[order] ? 1 : 0) * (falling ? -1 : 1));
    const body = table.querySelector("tbody");
    body.replaceChildren(...rows.slice(0, 50).map((row) => {
      const line = document.createElement("tr");
      line.append(...row.slice(0, columns.length).map((value, i) => {
        const cell = document.createElement("td");
        cell.textContent = shown[i](value);
        return cell;
      }));
      line.addEventListener("click", () => { field.value = row[0]; search(row[0]); });
      return line;
    }));
  };
  const head = document.createElement("tr");
  columns.forEach((title, i) => {
    const cell = document.createElement("th");
    cell.textContent = title;
    cell.addEventListener("click", () => {
      falling = order === i ? !falling : i > 0;
      order = i;
      fillTable();
    });
    head.append(cell);
  });
  table.querySelector("thead").append(head);

  fillTable();
  drawFlame();
  draw();
  // For tests and for people with a console.
  window.timeline = { view, show, draw, search, eventAt, describe, slices: () => slices, matched: () => matched.length, boxes: () => boxes.length,
    center: (i) => [x(begin[i] + duration[i] / 2), rowOf(i)], selected: () => selected };
})();
