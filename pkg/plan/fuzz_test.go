// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// For any bytes: no panic and the same result twice. An accepted plan keeps every
// promise of the package comment, fits the schema and survives a round trip
// through JSON, read as JSON and as YAML.
func FuzzDecode(f *testing.F) {
	for _, file := range append(goodPlans(f), badPlans(f)...) {
		f.Add(golden.Read(f, file))
	}
	f.Add([]byte(`{"schema":"fumehood.plan/v1","proposals":[{"id":"a","argv":["ls",""],"limits":{"memory":"512MiB","cpus":1e-2}}]}`))
	f.Add([]byte(`{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"ls","network":["*.a.b:1","1.2.3.4:5","registry:go","::1"],"phase":"setup"}]}`))
	schema := golden.ReadSchema(f, published)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"", ".json", ".yaml"} {
			p, problems := Decode(data, name)
			again, sameProblems := Decode(data, name)
			if diff := cmp.Diff(problems, sameProblems) + cmp.Diff(p, again); diff != "" {
				t.Fatalf("two readings differ:\n%s", diff)
			}
			if len(problems) > 0 {
				checkProblems(t, problems)
				continue
			}
			checkAccepted(t, p)
			if len(p.Refused()) > 0 {
				continue // no document says that a proposal is invalid
			}
			doc := encode(t, p)
			if err := validate(t, schema, doc); err != nil {
				t.Fatalf("the schema refuses an accepted plan: %v\n%s", err, doc)
			}
			checkRoundTrip(t, p, doc)
		}
	})
}

func checkProblems(t *testing.T, problems []proposal.Problem) {
	t.Helper()
	if len(problems) > maxProblems {
		t.Fatalf("%d problems", len(problems))
	}
	for i, p := range problems {
		if p.Line < 1 || p.Col < 1 || p.Message == "" {
			t.Fatalf("problem without place or message: %+v", p)
		}
		if i > 0 && p.Line < problems[i-1].Line {
			t.Fatalf("problems out of order: %+v after %+v", p, problems[i-1])
		}
		if line := Describe("plan", p); !printable(line) || len(line) > 4096 {
			t.Fatalf("problem that cannot be printed: %q", line)
		}
	}
}

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

func checkAccepted(t *testing.T, p proposal.Plan) {
	t.Helper()
	if p.Schema != proposal.PlanSchema || len(p.Proposals) == 0 || len(p.Proposals) > maxProposals {
		t.Fatalf("schema %q with %d proposals", p.Schema, len(p.Proposals))
	}
	ids, ran := map[string]bool{}, false
	for _, one := range p.Proposals {
		if setup := one.Phase == proposal.PhaseSetup; setup && ran || !setup && one.Phase != "" && one.Phase != proposal.PhaseRun {
			t.Fatalf("%s has the phase %q", one.ID, one.Phase)
		} else {
			ran = ran || !setup && one.Invalid == nil // a refused one never runs, and keeps the place of its phase
		}
		if one.Invalid != nil {
			checkInvalid(t, one)
		} else {
			checkProposal(t, one)
		}
		checkHosts(t, one)
		for _, need := range one.Needs {
			if !ids[need] {
				t.Fatalf("%s needs %s, which is not before it", one.ID, need)
			}
		}
		if ids[one.ID] {
			t.Fatalf("id %s twice", one.ID)
		}
		ids[one.ID] = true
	}
}

// checkInvalid checks that there is nothing to run, and no id that a report cannot have.
func checkInvalid(t *testing.T, p proposal.Proposal) {
	t.Helper()
	checkProblems(t, p.Invalid.Problems)
	var ps problems
	document.Check(&node{Kind: text, Value: p.ID}, idShape, "id", &ps)
	if len(ps.List) > 0 || len(p.Invalid.Problems) == 0 || len(p.Invalid.Problems) > valid.MaxInvalid || len(p.Invalid.Text) > MaxDocument {
		t.Fatalf("refused as %+v", p)
	}
	p.ID, p.Invalid = "", nil
	if diff := cmp.Diff(proposal.Proposal{}, p); diff != "" {
		t.Fatalf("a refused proposal has more than an id:\n%s", diff)
	}
}

// checkHosts checks that an entry is one of the forms that policy compares.
func checkHosts(t *testing.T, p proposal.Proposal) {
	t.Helper()
	for _, entry := range p.Network {
		if name, ok := strings.CutPrefix(entry, "registry:"); ok && slices.Contains(document.Registries, name) {
			continue
		}
		if addr, err := netip.ParseAddrPort(entry); err == nil && addr.String() == entry && addr.Port() > 0 {
			continue
		}
		if addr, err := netip.ParseAddr(entry); err == nil && addr.String() == entry && addr.Zone() == "" {
			continue
		}
		name := entry
		if host, port, err := net.SplitHostPort(entry); err == nil {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
				t.Fatalf("%s has the port %q", p.ID, port)
			}
			name = host
		}
		name = strings.TrimPrefix(name, "*.")
		if name == "" || strings.ToLower(name) != name || strings.Trim(name, ".") != name || strings.ContainsAny(name, "*:[]/@ ") {
			t.Fatalf("%s asks for %q", p.ID, entry)
		}
	}
}

func checkProposal(t *testing.T, p proposal.Proposal) {
	t.Helper()
	forms := 0
	for _, given := range []bool{p.Run != "", p.Argv != nil, p.Code != ""} {
		if given {
			forms++
		}
	}
	if forms != 1 || (p.Code != "") != (p.Language != "") {
		t.Fatalf("%s has %d forms and language %q", p.ID, forms, p.Language)
	}
	texts := []string{p.ID, p.Run, p.Code, p.Language, p.Why, p.Cwd, p.Stdin, p.Expect, p.Phase}
	for _, list := range [][]string{p.Argv, p.Network, p.Outputs, p.Needs} {
		texts = append(texts, list...)
	}
	for name, value := range p.Env {
		texts = append(texts, name, value)
	}
	total := 0
	for _, s := range texts {
		total += len(s)
		if r, _, found := document.FirstHidden(s); found || !utf8.ValidString(s) {
			t.Fatalf("%s holds %U in %q", p.ID, r, s)
		}
	}
	if total > MaxDocument || p.Timeout < 0 || p.Timeout.Std() > document.MaxTimeout {
		t.Fatalf("%s has %d bytes and timeout %s", p.ID, total, p.Timeout)
	}
}

func checkRoundTrip(t *testing.T, p proposal.Plan, doc []byte) {
	t.Helper()
	p.Digest = ""
	for _, name := range []string{".json", ".yaml"} {
		back, problems := Decode(doc, name)
		if len(doc) > MaxDocument {
			return // escapes made it longer than the plan limit
		}
		if len(problems) > 0 {
			t.Fatalf("%s: %s\n%s", name, Describe("again", problems[0]), doc)
		}
		back.Digest = ""
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatalf("%s: lost on the way (-want +got):\n%s", name, diff)
		}
	}
}
