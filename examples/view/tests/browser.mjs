// The page in a real browser: a run and a series, its controls, what it shows. Needs Node 22 (or 20 with --experimental-websocket) and
// Chromium; says so and ends well where one of them is missing.
//
//   node --experimental-websocket examples/view/tests/browser.mjs target/release/meshweft [FOLDER for screenshots] [--measure MESH]

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const words = process.argv.slice(2);
const measured = words.includes("--measure") ? words.splice(words.indexOf("--measure"), 2)[1] : null;
const [program, folder = mkdtempSync(join(tmpdir(), "view-"))] = words;

function skip(why) {
  console.log(`SKIPPED: ${why}`);
  process.exit(0);
}

const names = [process.env.CHROMIUM, "chromium", "chromium-browser", "google-chrome"].filter(Boolean);
const browser = names.find((name) => {
  try { return execFileSync(name, ["--version"], { stdio: ["ignore", "pipe", "ignore"] }); } catch { return false; }
});
if (!browser) skip("no Chromium on this machine (CHROMIUM names one that is elsewhere)");
if (typeof WebSocket === "undefined") skip("this Node has no WebSocket: take Node 22, or --experimental-websocket");
if (!program || !existsSync(program)) throw new Error("name the program: target/release/meshweft");

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const started = [];
const scratch = mkdtempSync(join(tmpdir(), "view-"));
mkdirSync(folder, { recursive: true });

async function until(what, test, patience = 60000) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await test();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await sleep(50);
  }
}

/** Starts a command of the program and waits for the address of its page. */
async function serve(...args) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  started.push(child);
  let [out, err] = ["", ""];
  child.stdout.on("data", (text) => { out += text; });
  child.stderr.on("data", (text) => { err += text; });
  const ended = new Promise((done) => child.on("close", done));
  const url = await until("the address of the page", () => err.match(/view: (\S+)/)?.[1]);
  return { child, url, ended, out: () => out, err: () => err };
}

/** A browser with one page. */
async function open() {
  const profile = join(scratch, "profile");
  const flags = ["--headless=new", "--no-sandbox", "--remote-debugging-port=0", `--user-data-dir=${profile}`, "--window-size=1280,820",
    "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars", "about:blank"];
  started.push(spawn(browser, flags, { stdio: "ignore", detached: true }));
  const ports = join(profile, "DevToolsActivePort");
  const port = await until("the browser", () => existsSync(ports) && readFileSync(ports, "utf8").split("\n")[0]);
  const page = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()).find(({ type }) => type === "page");
  const socket = new WebSocket(page.webSocketDebuggerUrl);
  await new Promise((done) => { socket.onopen = done; });
  const [waiting, complaints] = [new Map(), []];
  let last = 0;
  socket.onmessage = ({ data }) => {
    const { id, result, error, method, params } = JSON.parse(data);
    if (id) waiting.get(id)(error ? { error } : result);
    else if (method === "Fetch.requestPaused") answer(params);
    else if (method === "Runtime.exceptionThrown") complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    else if (method === "Log.entryAdded" && params.entry.level === "error") complaints.push(params.entry.text);
  };
  const call = (method, params = {}) => new Promise((done) => {
    waiting.set(++last, done);
    socket.send(JSON.stringify({ id: last, method, params }));
  });
  // With PAGE=examples/view/page scripts and style are those there, so that a change of them needs no build.
  const kinds = { css: "text/css", js: "text/javascript" };
  const answer = ({ requestId, request }) => {
    const name = new URL(request.url).pathname.split("/")[2];
    const body = readFileSync(join(process.env.PAGE, name)).toString("base64");
    const responseHeaders = [{ name: "Content-Type", value: kinds[name.split(".").at(-1)] }];
    call("Fetch.fulfillRequest", { requestId, responseCode: 200, responseHeaders, body });
  };
  if (process.env.PAGE) await call("Fetch.enable", { patterns: ["*.js", "*.css"].map((urlPattern) => ({ urlPattern })) });
  await call("Runtime.enable");
  await call("Log.enable");
  await call("Page.enable");
  const value = async (code) => {
    const { result, exceptionDetails } = await call("Runtime.evaluate", { expression: code, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? code);
    return result.value;
  };
  return {
    complaints, value, call,
    go: async (url) => {
      await call("Page.navigate", { url });
      await until("the page", () => value("globalThis.meshweft?.frames > 0")).catch((error) => {
        throw new Error(`${error.message}; the browser says: ${complaints.join("; ")}`);
      });
    },
    text: (id) => value(`document.getElementById("${id}").innerText`),
    set: (id, to) => value(`{ const e = document.getElementById("${id}");
      e[e.type === "checkbox" ? "checked" : "value"] = ${JSON.stringify(to)};
      e.dispatchEvent(new Event("input", { bubbles: true })); e.dispatchEvent(new Event("change", { bubbles: true })); }`),
    press: (id) => value(`document.getElementById("${id}").click()`),
    click: async (x, y) => {
      for (const type of ["mousePressed", "mouseReleased"]) {
        await call("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
      }
    },
    shoot: async (name) => {
      const { data } = await call("Page.captureScreenshot", { format: "png" });
      writeFileSync(join(folder, `${name}.png`), Buffer.from(data, "base64"));
    },
  };
}

function is(right, what) {
  if (!right) throw new Error(`not so: ${what}`);
  console.log(`ok  ${what}`);
}

async function test() {
  const page = await open();
  const out = join(scratch, "cloth");
  const steps = ["--set", "touching=off", "--mesh", "sheet:48", "--steps", "6000", "--every", "300"];
  let run = await serve("run", "cloth", "--view", ...steps, "--no-pictures", "--quiet", "--out", out);
  await page.go(run.url);
  await until("ten frames", () => page.value("meshweft.frames > 10"));
  await page.press("pause");
  await until("the pause", async () => (await page.text("pause")) === "Go on");
  await sleep(400);
  const step = await page.value("meshweft.step");
  await sleep(400);
  is((await page.value("meshweft.step")) === step, "a paused run stands still");
  await page.press("forth");
  await until("a step", () => page.value(`meshweft.step === ${step + 1}`));
  is(true, "a single step is one step");
  await page.set("wires", true);
  await page.click(600, 330);
  await until("the values of a vertex", async () => (await page.text("pick-values"))?.includes("position"));
  is(/vertex \d+/.test(await page.text("pick-name")), `a vertex is picked: ${await page.text("pick-name")}`);
  await page.set("field", "0");
  await page.set("component", "2");
  await until("the legend", async () => !(await page.value("document.getElementById('legend').hidden")));
  await sleep(300);
  await page.shoot("1-run-paused-picked");
  await page.press("unpick");
  await page.press("pause");
  await until("the end of the run", async () => (await page.text("trouble")).includes("over"));
  await page.shoot("2-run-over");
  await page.call("Page.navigate", { url: "about:blank" });
  is((await Promise.race([run.ended, sleep(20000)])) === 0, "the command ends when the page is closed");
  const digest = run.out().match(/digest\s+(\S+)/)?.[1];
  const alone = execFileSync(program, ["run", "cloth", "--mesh", "sheet:48", "--steps", "6000", "--no-pictures", "--quiet", "--out", join(scratch, "alone")]);
  is(digest && digest === alone.toString().match(/digest\s+(\S+)/)?.[1], `paused, stepped and watched, the digest is the same: ${digest}`);

  run = await serve("view", join(out, "cloth.pvd"));
  await page.go(run.url);
  const last = Number(await page.value("document.getElementById('at').max"));
  is(last === 20, "the slider has all states");
  is((await page.text("plots")).includes("kinetic energy"), "the curves of a series are those of the table beside it");
  await page.set("at", "10");
  await until("state 11", async () => (await page.text("step")).startsWith("state 11 of 21"));
  is((await page.value("meshweft.step")) === 10, "the slider chooses the state");
  await page.press("theme");
  await sleep(300);
  await page.shoot("3-series-dark");
  await page.set("pace", "10");
  await page.press("pause");
  const before = await page.value("meshweft.frames");
  await until("ten states", () => page.value(`meshweft.frames > ${before + 10}`));
  is(true, "the series plays");
  run.child.kill("SIGINT");
  is((await run.ended) === 0, "Ctrl-C ends it");

  run = await serve("run", "heat", "--view", "--mesh", "ball:16", "--steps", "100000", "--no-pictures", "--quiet", "--out", join(scratch, "heat"));
  await page.go(run.url);
  await page.set("map", "plasma");
  await page.set("cut", "1");
  await page.set("pace", "5");
  await sleep(1500);
  await page.shoot("4-solid-cut");
  run.child.kill("SIGINT");
  is((await run.ended) === 130, "Ctrl-C stops a watched run");

  const torn = ["--set", "tear=0.05", "--set", "pins=side", "--mesh", "sheet:30"];
  run = await serve("run", "cloth", "--view", ...torn, "--steps", "100000", "--no-pictures", "--quiet", "--out", join(scratch, "cloth"));
  await page.go(run.url);
  await page.set("wires", true);
  await until("cloth that tears", () => page.value("meshweft.shapes > 3 && meshweft.frames > 6"));
  is(await page.value("meshweft.wires"), "what tears is drawn anew, as it was chosen");
  await page.shoot("9-torn");
  run.child.kill("SIGINT");
  is((await run.ended) === 130, "Ctrl-C stops a run that tears");

  run = await serve("run", "wave", "--view", "--steps", "1000000", "--no-pictures", "--quiet", "--out", join(scratch, "wave"));
  await page.go(run.url);
  await page.set("pace", "7");
  await page.press("dials-summary");
  is((await page.value("document.getElementById('dial-0').value")) === "1", "a setting has its value");
  await page.set("dial-1", "1.5");
  await until("the change", () => run.err().includes("changed: damping from 0 to 1.5 1/s after step"));
  await page.set("dial-1", "-1");
  await until("the refusal", async () => (await page.text("trouble")).includes("out of range"));
  await sleep(3000);
  is((await page.value("document.getElementById('dial-1').value")) === "1.5", "a value that is refused is not taken");
  await page.shoot("5-wave");
  run.child.kill("SIGINT");
  await run.ended;
  is(/changed +damping from 0 to 1.5/.test(run.out()), "the run says at its end what was changed");

  const twins = ["--processes", "2", "--threads", "1", "--steps", "1000000", "--no-pictures", "--quiet", "--out", join(scratch, "hosts")];
  run = await serve("run", "spring", "--view", "--mesh", "box:20", ...twins);
  await page.go(run.url);
  await until("the table of hosts", async () => (await page.text("table")).includes("waited for"));
  await page.set("field", await page.value("[...document.querySelectorAll('#field option')].find((option) => option.text === 'host').value"));
  await sleep(1500);
  await page.shoot("8-hosts");
  is((await page.text("legend-label")) === "host", "a mesh has the colors of its hosts");
  run.child.kill("SIGINT");
  await run.ended;

  run = await serve("run", "bfs", "--view", "--steps", "1000000", "--no-pictures", "--quiet", "--out", join(scratch, "bfs"));
  await page.go(run.url);
  await sleep(500);
  await page.shoot("6-graph");
  run.child.kill("SIGINT");
  await run.ended;

  run = await serve("view", "hexes:6");
  await page.go(run.url);
  await page.set("wires", true);
  await page.set("cut", "0");
  await sleep(500);
  await page.shoot("7-mesh");
  run.child.kill("SIGINT");
  await run.ended;
  const real = page.complaints.filter((text) => !/ERR_CONNECTION_REFUSED|WebSocket connection/.test(text));
  is(real.length === 0, `the browser has nothing to complain of ${real.join("; ")}`);
}

/** Frames a second, and what watching costs a run, by pairs of five seconds in which a page asks for frames and does not. */
async function measure(mesh) {
  const middle = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
  const range = (list, unit) => `${middle(list).toFixed(1)} ${unit} (${Math.min(...list).toFixed(1)} to ${Math.max(...list).toFixed(1)})`;
  for (const example of ["cloth", "wave"]) {
    const args = ["run", example, "--mesh", mesh, "--no-pictures", "--quiet", "--out", join(scratch, example), "--every", "1000000"];
    const run = await serve(...args, "--steps", "10000000", "--view");
    const socket = new WebSocket(`${run.url.replace("http", "ws")}live`);
    socket.binaryType = "arraybuffer";
    let [frames, bytes, watches, came] = [0, 0, false, null];
    await new Promise((done) => { socket.onopen = done; });
    const field = example === "cloth" ? 3 : 0;
    socket.send(JSON.stringify({ field, metrics: true }));
    socket.onmessage = ({ data }) => {
      if (typeof data === "string" || new Uint32Array(data, 0, 1)[0] !== 2) return;
      [frames, bytes] = [frames + 1, bytes + data.byteLength];
      came?.(new Float64Array(data, 24, 1)[0]);
      if (watches) socket.send(JSON.stringify({ ready: true }));
    };
    // Seconds of all cores that the program has used, which other programs hardly change.
    const cpu = () => {
      const words = readFileSync(`/proc/${run.child.pid}/stat`, "utf8").split(") ")[1].split(" ");
      return (Number(words[11]) + Number(words[12])) / 100;
    };
    // The step at which the run is.
    const step = () => new Promise((done) => {
      came = (at) => { came = null; done({ at, ms: performance.now(), cpu: cpu() }); };
      socket.send(JSON.stringify({ ready: true }));
    });
    await sleep(3000);
    const [slower, work, rates, flow, stepped] = [[], [], [], [], []];
    for (let i = 0; i < 5; i++) {
      const [speeds, used] = [[], []];
      for (const watched of i % 2 ? [true, false] : [false, true]) {
        const from = await step();
        const [frame, byte] = [frames, bytes];
        watches = watched;
        if (watched) socket.send(JSON.stringify({ ready: true }));
        await sleep(5000);
        watches = false;
        await sleep(100);
        const [seen, much] = [frames - frame, bytes - byte];
        const to = await step();
        const seconds = (to.ms - from.ms) / 1000;
        speeds[watched ? 1 : 0] = (to.at - from.at) / seconds;
        used[watched ? 1 : 0] = (to.cpu - from.cpu) / (to.at - from.at);
        if (watched) { rates.push(seen / 5); flow.push(much / 5e6); }
      }
      slower.push(100 * (speeds[0] / speeds[1] - 1));
      work.push(100 * (used[1] / used[0] - 1));
      stepped.push(speeds[0]);
    }
    console.log(`${example} ${mesh}: ${range(rates, "frames a second")}, ${range(flow, "MB a second")}; the run is ${range(slower, "% slower")}`);
    console.log(`${example} ${mesh}: ${range(stepped, "steps a second unwatched")}; a step takes ${range(work, "% more time of cores")}`);
    socket.close();
    const page = (globalThis.browserPage ??= await open());
    await page.go(run.url);
    await sleep(4000);
    const drawn = [];
    for (let i = 0; i < 5; i++) { await sleep(1100); drawn.push(await page.value("meshweft.fps")); }
    console.log(`${example} ${mesh}: drawn in software ${range(drawn, "frames a second")}`);
    await page.shoot(`measure-${example}`);
    await page.call("Page.navigate", { url: "about:blank" });
    run.child.kill("SIGINT");
    await run.ended;
    // Nobody watches: whole runs, of about five seconds.
    const idle = [];
    const steps = String(Math.max(50, Math.round(5 * (example === "cloth" ? 60 : 400))));
    for (let i = 0; i < 5; i++) {
      const seconds = [];
      for (const view of i % 2 ? [true, false] : [false, true]) {
        const json = execFileSync(program, [...args, "--steps", steps, "--json", ...(view ? ["--view"] : [])], { stdio: ["ignore", "pipe", "ignore"] });
        seconds[view ? 1 : 0] = JSON.parse(json).wall_s;
      }
      idle.push(100 * (seconds[1] / seconds[0] - 1));
    }
    console.log(`${example} ${mesh}: with a view that nobody watches, ${range(idle, "% slower")}`);
  }
}

let code = 0;
try {
  await (measured ? measure(measured) : test());
  console.log(`screenshots in ${folder}`);
} catch (error) {
  console.log(`FAILED ${error.stack}`);
  code = 1;
}
for (const child of started) {
  try { child.spawnargs.includes("--headless=new") ? process.kill(-child.pid) : child.kill("SIGKILL"); } catch { /* it has ended */ }
}
await sleep(300);
rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
process.exit(code);
