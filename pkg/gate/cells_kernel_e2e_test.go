// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package gate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// What a cell showed, in an ipykernel or here.
type shownByCell struct {
	Stdout, Stderr string
	Displays       []map[string]any
	Error          []string // name and value
}

var (
	differs   = regexp.MustCompile(`^# differs: (.+)\n`)
	addresses = regexp.MustCompile(`0x[0-9a-f]{4,}`)
	cellFiles = regexp.MustCompile(`\(?(<cell \d+>|/?[\w/]*\d+\.py)([,:])`)
)

func (s shownByCell) String() string {
	var b strings.Builder
	for _, stream := range []string{s.Stdout, s.Stderr} {
		fmt.Fprintf(&b, "%q\n", strings.ReplaceAll(stream, "\r\n", "\n"))
	}
	for _, d := range s.Displays {
		delete(d, "application/vnd.dataresource+json") // a table's form that ipykernel does not have
		fmt.Fprintf(&b, "%q %q\n", slices.Sorted(maps.Keys(d)), d["text/plain"])
	}
	fmt.Fprintf(&b, "%q", s.Error)
	return cellFiles.ReplaceAllString(addresses.ReplaceAllString(b.String(), "0x0"), "cell$2")
}

// Cells show in the sandbox what they show in an ipykernel on the host. Those that do not are marked
// in the table, with the reason.
func TestE2ECellsShowWhatIpykernelShows(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/kernel.cells")
	if err != nil {
		t.Fatal(err)
	}
	var cells, reasons []string
	for c := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n---\n") {
		reason := ""
		if m := differs.FindStringSubmatch(c); m != nil {
			reason, c = m[1], c[len(m[0]):]
		}
		cells, reasons = append(cells, c), append(reasons, reason)
	}
	input, err := json.Marshal(cells)
	if err != nil {
		t.Fatal(err)
	}
	kernel := exec.CommandContext(t.Context(), "/usr/bin/python3", "testdata/kernel.py")
	kernel.Stdin = bytes.NewReader(input)
	kernel.Env = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	out, err := kernel.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []shownByCell
	if err := json.Unmarshal(out, &want); err != nil || len(want) != len(cells) {
		t.Fatalf("%d of %d cells, %v", len(want), len(cells), err)
	}
	s := open(t, newGate(t, gate.Options{Workspace: t.TempDir()}), gate.SessionOptions{})
	defer s.Close()
	for i, code := range cells {
		r := do(t, s, cell(fmt.Sprint("p", i), "python", code))
		got := shownHere(r)
		if same := got.String() == want[i].String(); same != (reasons[i] == "") {
			t.Errorf("%s\nmarked %q\nhere:\n%v\nin ipykernel:\n%v\n%v %v", code, reasons[i], got, want[i], r.Decision.Effect,
				r.Decision.Rules)
		}
	}
}

func shownHere(r proposal.Record) (s shownByCell) {
	if r.Result == nil {
		return s
	}
	s.Stdout, s.Stderr = string(r.Result.Stdout.Head), string(r.Result.Stderr.Head)
	for _, d := range r.Result.Displays {
		forms := map[string]any{}
		for mime, text := range d.Forms {
			forms[mime] = text
		}
		s.Displays = append(s.Displays, forms)
	}
	if e := r.Result.Exception; e != nil {
		s.Error = []string{e.Name, e.Value}
	}
	return s
}
