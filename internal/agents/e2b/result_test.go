// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// What came while a command ran is not printed again; what was lost is said.
func TestPrinter(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(whole, []byte(strings.Repeat("x", 100<<10)), 0o600); err != nil {
		t.Fatal(err)
	}
	long := proposal.Stream{Head: []byte("x"), Tail: []byte("x"), Truncated: true, Bytes: 100<<10 + 5, File: whole, FileBytes: 100 << 10}
	gone := long
	gone.File = filepath.Join(whole, "missing")
	result := func(out, err proposal.Stream) proposal.Result {
		return proposal.Result{Status: proposal.Exited, Stdout: out, Stderr: err, Displays: []proposal.Display{{Value: true}}, DisplaysOmitted: 2}
	}
	text := func(s string) proposal.Stream { return proposal.Stream{Head: []byte(s), Bytes: int64(len(s))} }
	killed := result(text("a"), proposal.Stream{Withheld: "output.secret: it has a key"})
	killed.Status, killed.Limit, killed.Displays, killed.DisplaysOmitted = proposal.TimedOut, "wall 1s", nil, 0
	killed.NewSandbox = true
	killed.Observations = &proposal.Observations{Programs: []proposal.Program{{Name: "curl", Refused: 1, Rule: "exec.network"}}}
	for _, tt := range []struct {
		name     string
		chunks   []proposal.Chunk
		result   proposal.Result
		out, err string
		shown    int
	}{
		{"at the end", nil, result(text("a\n"), text("b\n")), "a\n", "b\nfumehood: 2 results are missing: there are too many\n", 1},
		{"as it comes", []proposal.Chunk{{Stream: "stdout", Data: []byte("a")}, {Stream: "stdout", Data: []byte("\n")}, {Stream: "display", Display: &proposal.Display{}}}, result(text("a\n"), text("b\n")), "a\n", "b\nfumehood: 2 results are missing: there are too many\n", 1},
		{"dropped", []proposal.Chunk{{Stream: "stdout", Data: []byte("b"), Dropped: 7}, {Stream: "display", Dropped: 3}}, result(text("a"), text("")), "\n[7 bytes are missing: the client reads too slowly]\nb", "fumehood: 3 results are missing: the client reads too slowly\nfumehood: 2 results are missing: there are too many\n", 0},
		{"long", nil, result(long, text("")), strings.Repeat("x", 100<<10) + "\n[5 bytes are missing]\n", "fumehood: 2 results are missing: there are too many\n", 1},
		{"long and gone", nil, result(gone, text("")), "x\n[102403 bytes are missing]\nx", "fumehood: 2 results are missing: there are too many\n", 1},
		{"ended", []proposal.Chunk{{Stream: "stderr", Withheld: "output.secret: it has a key"}}, killed, "a", "fumehood: timed out, wall 1s\nfumehood: this ran in a new kernel, because the one before had to be ended: files written before are lost\nfumehood: stderr is withheld: output.secret: it has a key\nfumehood: policy refused the program curl: exec.network\n", 0},
	} {
		got, shown := map[string]string{}, 0
		p := newPrinter(func(stream string, data []byte) {
			if len(data) > chunk {
				t.Errorf("%s: a part of %d bytes", tt.name, len(data))
			}
			got[stream] += string(data)
		}, func(proposal.Display) { shown++ })
		for _, c := range tt.chunks {
			p.printChunk(c)
		}
		p.printRest(proposal.Record{Result: &tt.result})
		if got["stdout"] != tt.out || got["stderr"] != tt.err || shown != tt.shown {
			t.Errorf("%s: %.200q, %.400q and %d results", tt.name, got["stdout"], got["stderr"], shown)
		}
	}
}

// The forms of a result have the SDK's names, and a table is columns without its index.
func TestResultOf(t *testing.T) {
	table := `{"schema":{"fields":[{"name":"index"},{"name":"a"}],"primaryKey":["index"]},"data":[{"index":0,"a":1},{"index":1,"a":null}]}`
	got, err := json.Marshal(resultOf(proposal.Display{Value: true, Forms: map[string]string{"text/plain": "1", "image/png": "aGk=", "application/json": `{"x":1}`, "x/y": "z", tableType: table}}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"application/vnd.dataresource+json":` + table + `,"data":{"a":[1,null]},"is_main_result":true,"json":{"x":1},"png":"aGk=","text":"1","type":"result","x/y":"z"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

// A client that reads slowly makes the process wait for a while, then loses its events.
func TestFeed(t *testing.T) {
	x := &process{}
	f, err := x.attachFeed()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range 3 * maxFeed / chunk {
			x.publishOutput("stdout", make([]byte, chunk))
		}
		x.publishEnd(endEvent(0, ""))
	}()
	bytes := 0
	for last := false; !last; {
		<-f.wake
		var events []map[string]any
		if events, last, err = f.takeEvents(); err != nil {
			t.Fatal(err)
		}
		bytes += len(events)
	}
	if bytes != 3*maxFeed/chunk+1 {
		t.Errorf("%d events", bytes)
	}
	if _, err := x.attachFeed(); err == nil {
		t.Error("a process that has ended is followed")
	}
}

// A client that does not read in time loses the events, and the process goes on.
func TestSlowFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &feed{wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
		begin := time.Now()
		for range 2 {
			slow.pushWhenRoom(nil, maxFeed)
		}
		if _, _, err := slow.takeEvents(); err == nil || time.Since(begin) != slowFeed {
			t.Errorf("a client that does not read: %v after %v", err, time.Since(begin))
		}
		slow.pushWhenRoom(nil, maxFeed) // does not wait any more
	})
}
