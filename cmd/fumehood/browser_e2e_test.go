// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	browserPage = `<!doctype html><title>page</title><body style="margin:0;background:#36c"><h1 id="a">Hello</h1>
<button onclick="a.textContent='clicked'">press</button><script>document.body.append(location.protocol)</script>`
	playwrightCore = "playwright-core@1.65.1"
)

// browserFiles are the workspace of TestE2EBrowser.
var browserFiles = map[string]string{
	"index.html":   browserPage,
	"package.json": `{"private":true}`,
	"shot.js": `const http = require('http'), fs = require('fs'), { chromium } = require('playwright-core');
const server = http.createServer((_, r) => { r.setHeader('content-type', 'text/html'); r.end(fs.readFileSync('index.html')); });
server.listen(0, '127.0.0.1', async () => {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });
  const page = await browser.newPage({ viewport: { width: 400, height: 300 } });
  await page.goto('http://127.0.0.1:' + server.address().port);
  await page.click('button');
  console.log(await page.textContent('h1'));
  await page.screenshot({ path: 'playwright.png' });
  await browser.close();
  server.close();
});`,
	// Code of the repository passes the options that policy denies in a text.
	"hostile.py": `import subprocess
try:
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--renderer-cmd-prefix=curl", "--utility-cmd-prefix=/usr/bin/curl", "--dump-dom", "index.html"], timeout=10)
except subprocess.TimeoutExpired:
    print("no page")
`,
}

// screenshot checks that the file has a picture of browserPage.
func screenshot(t *testing.T, path string, size image.Point) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	r, g, b, _ := picture.At(size.X-1, size.Y-1).RGBA()
	if picture.Bounds().Size() != size || r>>8 != 0x33 || g>>8 != 0x66 || b>>8 != 0xcc {
		t.Errorf("%s is %v with #%02x%02x%02x", path, picture.Bounds(), r>>8, g>>8, b>>8)
	}
	dark := 0
	for x := range size.X {
		for y := range 100 {
			if r, g, b, _ := picture.At(x, y).RGBA(); r+g+b < 0x8000 {
				dark++
			}
		}
	}
	if dark < 100 {
		t.Errorf("%s: the text has %d dark pixels: is there a font?", path, dark)
	}
}

// TestE2EBrowser has Debian's Chromium show pages of the workspace: alone, from a server of the
// same command, and from Playwright. Programs that the browser is made to start are decided
// like any other.
func TestE2EBrowser(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, text := range browserFiles {
		d.write(t, filepath.Join("ws", name), text)
	}
	install := exec.CommandContext(t.Context(), "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", playwrightCore)
	install.Dir = d.path("ws")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm: %v\n%s", err, out)
	}
	plan := "schema: fumehood.plan/v1\nproposals:\n"
	for _, p := range [][]string{
		{"served", "python3 -m http.server 8000 --bind 127.0.0.1 & sleep 1; chromium --headless --screenshot=served.png --window-size=800,600 http://127.0.0.1:8000/", "served.png"},
		{"file", "chromium --headless --no-sandbox --disable-gpu --dump-dom --print-to-pdf=page.pdf file:///workspace/index.html", "page.pdf"},
		{"playwright", "node shot.js", "playwright.png"},
		{"hostile", "python3 hostile.py"},
		{"denied", "chromium --headless --renderer-cmd-prefix=curl --dump-dom index.html"},
		{"outside", "chromium --headless --dump-dom https://example.com/"},
	} {
		plan += fmt.Sprintf("  - {id: %s, run: %q, outputs: [%s], timeout: 2m}\n", p[0], p[1], strings.Join(p[2:], ", "))
	}
	d.write(t, "plan.yaml", plan)
	_, r := d.run(t, "run", "--setup", "none")
	records := map[string]proposal.Record{}
	for _, x := range r.Records {
		records[x.Proposal.ID] = x
	}
	for _, id := range []string{"served", "file", "playwright", "hostile"} {
		x := records[id]
		if x.Result == nil || !x.Result.Succeeded() {
			t.Errorf("%s: %+v", id, x.Decision)
			continue
		}
		u := x.Result.Usage
		t.Logf("%s: %d ms, processor %d ms, %d MiB, %d processes", id, u.Wall.Value, u.CPUUser.Value+u.CPUSystem.Value, u.PeakMemory.Value>>20, u.Processes.Value)
		if id != "hostile" && (len(x.Result.Observations.Findings) > 0 || x.Result.Observations.Counts.Refused > 0) {
			t.Errorf("%s: findings %+v, refused %d", id, x.Result.Observations.Findings, x.Result.Observations.Counts.Refused)
		}
	}
	output := func(id, name string) string { return d.path("run/" + id + ".outputs/" + name) }
	screenshot(t, output("served", "served.png"), image.Pt(800, 600))
	screenshot(t, output("playwright", "playwright.png"), image.Pt(400, 300))
	if data, err := os.ReadFile(output("file", "page.pdf")); err != nil || !strings.HasPrefix(string(data), "%PDF-") {
		t.Errorf("page.pdf: %v", err)
	}
	for id, want := range map[string]string{"file": "</button><script>document.body.append(location.protocol)</script>file:</body>", "playwright": "clicked"} {
		if got := string(records[id].Result.Stdout.Head); !strings.Contains(got, want) {
			t.Errorf("%s prints %q", id, got)
		}
	}
	for _, id := range []string{"denied", "outside"} {
		if x := records[id]; x.Result != nil || !slices.Contains(x.Decision.Rules, "browser.option") {
			t.Errorf("%s: %+v", id, x.Decision)
		}
	}
	refused := 0
	for _, e := range records["hostile"].Result.Observations.Execs {
		if e.Kind == proposal.EventRefused && e.Path == "/usr/bin/curl" && e.Decision.Reason.Rule == "exec.network" {
			refused++
		} else if e.Path == "/usr/bin/curl" {
			t.Errorf("curl started: %+v", e)
		}
	}
	if refused == 0 {
		t.Errorf("no refused program: %+v", records["hostile"].Result.Observations.Counts)
	}
}
