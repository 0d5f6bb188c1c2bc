// What is measured, over time: a curve for each.

import { short } from "./message.js";

/** Points of a curve: beyond, every second one is left out. */
const MOST = 2000;

export class Plots {
  constructor(element, metrics) {
    this.times = [];
    this.all = metrics.map(({ name, unit }) => {
      const plot = document.createElement("div");
      plot.className = "plot";
      const [line, label, value, canvas] = ["p", "span", "span", "canvas"].map((tag) => document.createElement(tag));
      label.textContent = unit ? `${name} (${unit})` : name;
      label.title = label.textContent;
      line.append(label, value);
      plot.append(line, canvas);
      return { plot, value, canvas, numbers: [] };
    });
    element.replaceChildren(...this.all.map(({ plot }) => plot));
    element.hidden = metrics.length === 0;
    /** The time that is shown, of curves that are whole from the start. */
    this.now = null;
  }

  /** All that was measured before. */
  fill(history) {
    history.forEach(([time, numbers]) => this.push(time, numbers.map((x) => x ?? NaN)));
    if (history.length > 0) this.now = history[0][0];
  }

  push(time, numbers) {
    if (numbers.length !== this.all.length || time === this.times.at(-1)) return;
    if (time < this.times.at(-1)) this.clear();
    this.times.push(time);
    this.all.forEach((plot, i) => plot.numbers.push(numbers[i]));
    if (this.times.length > MOST) {
      const half = (list) => list.filter((_, i) => i % 2 === 0);
      this.times = half(this.times);
      this.all.forEach((plot) => { plot.numbers = half(plot.numbers); });
    }
  }

  clear() {
    this.times = [];
    this.all.forEach((plot) => { plot.numbers = []; });
  }

  draw(colors) {
    const [from, to] = [this.times[0], this.times.at(-1)];
    // Times are of the same run, but written with other digits.
    const near = this.now === null ? -1 : this.times.findLastIndex((time) => time <= this.now + 1e-9 * (to - from));
    for (const { value, canvas, numbers } of this.all) {
      if (numbers.length === 0) continue;
      value.textContent = short(numbers.at(near));
      const scale = devicePixelRatio;
      const [width, height] = [canvas.clientWidth * scale, canvas.clientHeight * scale];
      if (width === 0) continue;
      if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
      const pen = canvas.getContext("2d");
      pen.clearRect(0, 0, width, height);
      const finite = numbers.filter(Number.isFinite);
      const low = finite.reduce((a, b) => Math.min(a, b), Infinity);
      const high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
      const x = (t) => (to > from ? (t - from) / (to - from) : 1) * (width - 2 * scale) + scale;
      const y = (n) => height - 3 * scale - (high > low ? (n - low) / (high - low) : 0.5) * (height - 6 * scale);
      pen.strokeStyle = colors.line;
      pen.lineWidth = scale;
      pen.beginPath();
      pen.moveTo(0, height - 0.5 * scale);
      pen.lineTo(width, height - 0.5 * scale);
      if (this.now !== null) {
        pen.moveTo(x(this.now), 0);
        pen.lineTo(x(this.now), height);
      }
      pen.stroke();
      pen.strokeStyle = colors.mark;
      pen.lineWidth = 1.5 * scale;
      pen.beginPath();
      numbers.forEach((n, i) => { if (Number.isFinite(n)) pen.lineTo(x(this.times[i]), y(n)); });
      pen.stroke();
    }
  }
}
