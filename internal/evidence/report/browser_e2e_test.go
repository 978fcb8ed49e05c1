// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A browser is Debian's Chromium with one page, driven by the DevTools protocol over pipes.
type browser struct {
	t       testing.TB
	send    *os.File
	session string
	last    int

	mu      sync.Mutex
	answers map[int]chan devtools
	events  []devtools
	loaded  chan struct{}
}

// A devtools is a message of the protocol.
type devtools struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// startBrowser starts Chromium, which ends with the test.
func startBrowser(t testing.TB) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("cannot find Chromium (Debian's package chromium): %v", err)
	}
	fromUs, toBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromBrowser, toUs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	profile, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	cmd.ExtraFiles = []*os.File{fromUs, toUs} // descriptors 3 and 4
	// All of its processes must have ended before its directory is removed: they are killed
	// together, and Wait waits until the last one has closed standard error.
	cmd.SysProcAttr, cmd.Stderr = &syscall.SysProcAttr{Setpgid: true}, io.Discard
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fromUs.Close()
	toUs.Close()
	t.Cleanup(func() { toBrowser.Close(); cancel(); _ = cmd.Wait(); fromBrowser.Close(); removeProfile(t, profile) })
	b := &browser{t: t, send: toBrowser, answers: map[int]chan devtools{}, loaded: make(chan struct{}, 100)}
	go b.read(fromBrowser)
	b.attach()
	return b
}

// removeProfile removes a directory in which processes of a browser that was killed may still
// make files for a moment.
func removeProfile(t testing.TB, dir string) {
	err := os.RemoveAll(dir)
	for range 100 {
		if err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
		err = os.RemoveAll(dir)
	}
	t.Errorf("cannot remove the directory of the browser: %v", err)
}

// read distributes messages, which end in NUL.
func (b *browser) read(from *os.File) {
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m devtools
		if json.Unmarshal(bytes.TrimSuffix(data, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		switch answer := b.answers[m.ID]; {
		case answer != nil:
			answer <- m
		case m.Method == "Page.loadEventFired":
			b.loaded <- struct{}{}
		case m.Method != "":
			b.events = append(b.events, m)
		}
		b.mu.Unlock()
	}
}

// call calls a method and decodes its result.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	answer := make(chan devtools, 1)
	b.mu.Lock()
	b.last++
	m := devtools{ID: b.last, Method: method, Params: raw, Session: b.session}
	b.answers[b.last] = answer
	b.mu.Unlock()
	data, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.send.Write(append(data, 0)); err != nil {
		b.t.Fatal(err)
	}
	select {
	case m = <-answer:
	case <-time.After(2 * time.Minute):
		b.t.Fatalf("%s has no answer", method)
	}
	if m.Error != nil {
		b.t.Fatalf("%s: %s", method, m.Error.Message)
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			b.t.Fatal(err)
		}
	}
}

// attach opens a page that collects violations of its policy.
func (b *browser) attach() {
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	b.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `globalThis.violations = [];
		document.addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample))`}, nil)
}

// open loads a page from a file.
func (b *browser) open(page string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	b.events = nil
	b.mu.Unlock()
	b.call("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	select {
	case <-b.loaded:
	case <-time.After(2 * time.Minute):
		b.t.Fatal("the page does not load")
	}
}

// eval evaluates an expression in the page.
func (b *browser) eval(expression string, value any) {
	b.t.Helper()
	var r struct {
		Result    struct{ Value json.RawMessage }
		Exception *struct{ Text string } `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.Exception != nil {
		b.t.Fatalf("%.100s: %s %s", expression, r.Exception.Text, r.Result.Value)
	}
	if value != nil {
		if err := json.Unmarshal(r.Result.Value, value); err != nil {
			b.t.Fatalf("%.100s: %v: %s", expression, err, r.Result.Value)
		}
	}
}

// unexpected returns what the page did besides showing itself: dialogs, requests for
// anything but its own file, errors and warnings.
func (b *browser) unexpected() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	requests := 0
	for _, e := range b.events {
		switch e.Method {
		case "Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.windowOpen", "Page.frameRequestedNavigation":
			list = append(list, e.Method+" "+string(e.Params))
		case "Network.requestWillBeSent":
			if requests++; requests > 1 {
				list = append(list, e.Method+" "+string(e.Params))
			}
		}
	}
	return list
}

// view sets the width and the color scheme.
func (b *browser) view(width int, scheme string) {
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 2400, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// picture saves what is seen.
func (b *browser) picture(name string) {
	b.t.Helper()
	var shot struct{ Data []byte }
	b.call("Page.captureScreenshot", nil, &shot)
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), shot.Data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
