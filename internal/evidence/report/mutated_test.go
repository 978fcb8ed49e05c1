// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/watch/hosts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// full returns a small report in which every possible field is set.
func full() proposal.Report {
	r := approvedRun()
	r.Records = r.Records[:1]
	rec := &r.Records[0]
	rec.Analysis.Commands = []proposal.Command{{
		Program: "npm", Args: []proposal.Word{{Value: "npm", Static: true}}, Via: []string{"timeout"}, Inside: []string{"pipeline"},
		Assigns:   []proposal.Assign{{Name: "A", Value: proposal.Word{Value: "b"}}},
		Redirects: []proposal.Redirect{{Op: ">", FD: 1, Target: proposal.Word{Value: "x"}, Kind: "write"}},
	}}
	rec.Decision.Grant = &proposal.Grant{Limits: proposal.Limits{Wall: 1e9, CPUs: 1, Memory: 1, Pids: 1, Disk: 1, Files: 1, Output: 1}, Env: map[string]string{}, Network: []string{"a.example"}}
	rec.Result.Outputs = []proposal.Output{{Path: "a", SHA256: digest("a")}}
	rec.Result.Changes.Files = []proposal.Change{{Path: "a", Kind: "added", Type: "file"}}
	w := watchedRun().Records[0].Result
	rec.Result.Usage, rec.Result.Observations = w.Usage, w.Observations
	rec.Result.Retried = fallen(rec.Proposal.ID)
	rec.Proposal.Origin = proposal.OriginSetup
	rec.Result.Layer = &proposal.Layer{Key: "sha256:" + digest("k"), Digest: "sha256:" + digest("d"), Run: r.Run.ID, Made: r.Run.Start, Kept: true}
	o := rec.Result.Observations
	o.Programs, o.Execs, o.Counts.Execs = o.Programs[:1], o.Execs[1:2], 1
	o.Counts.Predicted, o.Counts.Decided, o.Counts.Unforeseen = 1, 0, 0
	o.Counts.Refused, o.Programs[0].Refused = 1, 1
	o.Network = []proposal.Reach{{Kind: proposal.EventConnection, Name: "a.example", Address: "192.0.2.1", Port: 443, Protocol: "tcp", SNI: "b.example", Program: "/usr/bin/curl",
		Refused: true, Code: "policy", Rule: "egress.host", Message: "no", Suggestion: "ask", Count: 1, Sent: 1, Received: 2, Calls: []string{"GET /"}}}
	o.Counts.Connections, o.Counts.NetRefused = 1, 1
	for _, e := range []*proposal.Event{&o.Execs[0], &o.Notable[0], &o.Findings[0].Event} {
		e.Command = rec.Proposal.ID
	}
	r.Error = &proposal.Failure{Code: "audit.full", Message: "no room"}
	r.Differences = differences(proposal.Difference{Path: "a", Kind: "added", Text: "diff", Note: "partly"})
	r.Totals, r.Hosts = proposal.Total(r.Records), hosts.ListHosts(r.Records)
	return r
}

// mutants returns one copy of the document for every value in it, changed by edit,
// with the value's path; a part of the values, except at night. edit returns false if it has
// nothing to change.
func mutants(t *testing.T, edit func(parent any, key any) bool) map[string][]byte {
	t.Helper()
	whole := document(t, full())
	all, step := map[string][]byte{}, sample.Rounds(t, 1, 3, 6)
	for n := 0; ; n += step {
		var tree any
		d := json.NewDecoder(bytes.NewReader(whole))
		d.UseNumber()
		if err := d.Decode(&tree); err != nil {
			t.Fatal(err)
		}
		left, path := n, ""
		if !visit(tree, "", &left, &path, edit) {
			if n < 100 {
				t.Fatalf("only %d mutants", n)
			}
			return all
		}
		data, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = data
	}
}

// visit applies edit to the value that comes after left others.
func visit(node any, at string, left *int, path *string, edit func(parent, key any) bool) bool {
	step := func(child, key any, name string) bool {
		if *left == 0 && edit(node, key) {
			*path = name
			return true
		}
		if *left > 0 {
			*left--
		}
		return visit(child, name, left, path, edit)
	}
	switch node := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if step(node[key], key, at+"."+key) {
				return true
			}
		}
	case []any:
		for i := range node {
			if step(node[i], i, fmt.Sprintf("%s[%d]", at, i)) {
				return true
			}
		}
	}
	return false
}

func put(parent, key, value any) bool {
	switch parent := parent.(type) {
	case map[string]any:
		parent[key.(string)] = value
	case []any:
		parent[key.(int)] = value
	}
	return true
}

// TestMutatedTypes: a value of a wrong type is refused.
func TestMutatedTypes(t *testing.T) {
	lanetest.SkipShort(t)
	for name, value := range map[string]any{"object": map[string]any{"x": 1}, "list of lists": []any{[]any{}}, "number": json.Number("1.25"), "boolean": "flip"} {
		for path, data := range mutants(t, func(parent, key any) bool {
			if name == "boolean" {
				return put(parent, key, true)
			}
			return put(parent, key, value)
		}) {
			if name == "boolean" && (strings.HasSuffix(path, ".static") || strings.Contains(path, "new_sandbox") || strings.HasSuffix(path, ".network[0].refused") || boolean(path)) {
				continue
			}
			if name == "number" && strings.HasSuffix(path, ".cpus") {
				continue
			}
			if _, err := Read(data, maxRead); err == nil {
				t.Errorf("%s at %s was read", name, path)
			}
		}
	}
}

// boolean reports whether the value at path is a boolean.
func boolean(path string) bool {
	for _, name := range []string{"glob", "exported", "function", "truncated", "fresh", "observed", "argv_cut", "first", "cacheable", "unverified", "complete", "kept"} {
		if strings.HasSuffix(path, "."+name) {
			return true
		}
	}
	return false
}

// TestMutatedFields: a missing field is refused, unless it is one that JSON leaves
// out when it is empty and its absence contradicts nothing.
func TestMutatedFields(t *testing.T) {
	optional := map[string]bool{}
	for path, data := range mutants(t, func(parent, key any) bool {
		if m, isObject := parent.(map[string]any); isObject {
			delete(m, key.(string))
			return true
		}
		return put(parent, key, map[string]any{"x": 1})
	}) {
		if _, err := Read(data, maxRead); err == nil {
			optional[path] = true
		}
	}
	for path := range optional {
		name := path[strings.LastIndexByte(path, '.')+1:]
		if strings.Contains(path, ".observations.") && strings.Contains(" decision reason errno address times protocol sni code message suggestion calls ", " "+name+" ") {
			continue
		}
		if !strings.Contains(" observations usage retried file file_bytes wall cpus memory pids disk files output grant approval url pr head_sha base_sha fork repository mode error audit hint sha256 text note differences layer hosts ", " "+name+" ") {
			t.Errorf("a report without %s was read", path)
		}
	}
	if len(optional) < 5 || optional[".schema"] {
		t.Errorf("without these the report was read: %v", optional)
	}
}

// TestMutatedTexts: a report with any text that Read accepts is rendered as promised.
func TestMutatedTexts(t *testing.T) {
	lanetest.SkipShort(t)
	for path, data := range mutants(t, func(parent, key any) bool { return put(parent, key, "</code>\n::error::x @you") }) {
		r, err := Read(data, maxRead)
		if err != nil {
			continue
		}
		if t.Run(path, func(t *testing.T) { checkComment(t, r, Markdown(r)) }); t.Failed() {
			return
		}
	}
}
