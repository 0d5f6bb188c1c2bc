"""The page of a simulation follows its steps, pauses it, and changes no bit."""

import json
import os
import socket
import sys
import threading
import time
import types
import urllib.request

import meshweft
import pytest
from test_simulation import heat


class Page:
    """What a browser does: asks for frames, one after the other."""

    def __init__(self, url):
        place, token = url.removeprefix("http://").rstrip("/").split("/")
        host, port = place.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        lines = [f"GET /{token}/live HTTP/1.1", f"Host: {place}", "Connection: Upgrade", "Upgrade: websocket"]
        lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "", ""]
        self._socket.sendall("\r\n".join(lines).encode())
        self._bytes = self._socket.makefile("rb")
        assert b"101" in self._bytes.readline()
        while self._bytes.readline().strip():
            pass

    def say(self, **what):
        text = json.dumps(what).encode()
        self._socket.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)

    def hear(self, kind):
        """The next message of that kind: 1 is the model, 2 a frame."""
        while True:
            first, size = self._bytes.read(2)
            if size > 125:
                size = int.from_bytes(self._bytes.read(2 if size == 126 else 8), "big")
            message = self._bytes.read(size)
            if first & 15 == 2 and message[0] == kind:
                return message

    def close(self):
        self._bytes.close()
        self._socket.close()


@pytest.fixture
def no_browser(monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda url: None)


def test_a_page_sees_a_simulation_between_calls_and_during_them(no_browser, capfd):
    sim, alone = heat("sheet:10"), heat("sheet:10")
    url = sim.view()
    assert sim.view("temperature") == url and url in capfd.readouterr().err
    page = Page(url)
    page.say(ready=True)
    model = page.hear(1)
    text = json.loads(model[32 : 32 + int.from_bytes(model[8:12], "little")])
    assert text["name"] == "Heat" and text["fields"][text["color"]]["name"] == "temperature"
    page.say(ready=True, field=text["color"])
    page.hear(2)
    frames = 0
    for _ in range(5):
        sim.step(40)
        page.say(ready=True)
        frames += len(page.hear(2)) > 400
    assert frames == 5
    page.say(ready=True, pause=True)
    time.sleep(0.3)
    thread = threading.Thread(target=lambda: sim.step(5), daemon=True)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive() and sim.steps == 200, "the page has paused it"
    page.say(step=2)
    time.sleep(0.3)
    assert sim.steps == 202
    page.close()
    thread.join(20)
    alone.step(205)
    assert sim.steps == 205 and sim.digest() == alone.digest()


def test_views_end_with_their_simulations_and_know_their_fields(no_browser):
    sim = meshweft.examples.cloth("sheet:6")
    with pytest.raises(meshweft.Error, match="unknown field 'q': one of position"):
        sim.view("q")
    page = Page(sim.view())
    assert b'"moves":true' in page.hear(1)
    del sim
    with pytest.raises((ValueError, OSError)):
        while True:
            page.hear(9)


def test_a_notebook_has_the_page_within_its_own(no_browser, monkeypatch):
    sim, other = heat("sheet:5"), heat("sheet:5")
    with urllib.request.urlopen(sim.view()) as answer:
        assert answer.headers["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    shown = []
    notebook = types.SimpleNamespace(display=lambda *parts: shown.extend(parts), HTML=str, IFrame=lambda url, **size: url)
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    url = other.view()
    assert shown[0] == url and url in shown[1]
    with urllib.request.urlopen(url) as answer:
        assert "X-Frame-Options" not in answer.headers
        assert "frame-ancestors http://localhost:* http://127.0.0.1:*" in answer.headers["Content-Security-Policy"]


def test_the_browser_is_given_a_file_that_is_this_users_alone(monkeypatch):
    opened = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url.removeprefix("file://")))
    url = heat("sheet:5").view()
    with open(opened[0]) as door:
        assert url in door.read()
    if os.name == "posix":
        assert os.stat(opened[0]).st_mode & 0o077 == 0
