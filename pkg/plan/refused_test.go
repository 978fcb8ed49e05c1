// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/valid"

	"github.com/fumehood/fumehood/internal/kit/document"
)

// planWith returns a plan with these proposals.
func planWith(proposals ...string) string {
	return `{"schema":"fumehood.plan/v1","proposals":[` + strings.Join(proposals, ",") + `]}`
}

// A proposal with a mistake is refused alone. Each row lists, in the order in which they
// run, the proposals by id, and for a refused one the path of its first problem.
func TestRefusedAlone(t *testing.T) {
	const good = `{"id":"good","run":"ls"}`
	for name, c := range map[string]struct {
		proposals []string
		want      string
	}{
		"value":               {[]string{good, `{"id":"bad","run":"ls","timeout":"soon"}`, `{"id":"last","run":"ls"}`}, "good, bad: proposals[1].timeout, last"},
		"unknown field":       {[]string{`{"id":"bad","run":"ls","sudo":true}`, good}, "bad: proposals[0].sudo, good"},
		"nothing to run":      {[]string{`{"id":"bad"}`, good}, "bad: proposals[0], good"},
		"null command":        {[]string{`{"id":"bad","run":null}`, good}, "bad: proposals[0].run, good"},
		"no object":           {[]string{`"rm -rf /"`, `null`, `[]`, good}, "refused-1: proposals[0], refused-2: proposals[1], refused-3: proposals[2], good"},
		"field twice":         {[]string{`{"id":"bad","run":"ls","run":"rm -rf /"}`, good}, "bad: proposals[0].run, good"},
		"no id":               {[]string{`{"run":"ls"}`, good}, "refused-1: proposals[0], good"},
		"unusable id":         {[]string{`{"id":"a b","run":"ls"}`, good}, "refused-1: proposals[0].id, good"},
		"id of a refused one": {[]string{`{"run":"ls"}`, `{"id":"refused-1","run":"ls"}`}, "refused-3: proposals[0], refused-1"},
		"same id":             {[]string{`{"id":"a","run":"ls"}`, good, `{"id":"a","run":"pwd"}`}, "a: proposals[0].id, good, refused-3: proposals[2].id"},
		"same id three times": {[]string{`{"id":"a","run":"ls"}`, `{"id":"a","run":"ls"}`, `{"id":"a","run":"ls"}`}, "a: proposals[0].id, refused-2: proposals[1].id, refused-3: proposals[2].id"},
		"id twice":            {[]string{`{"id":"a","id":"good","run":"ls"}`, good}, "a: proposals[0].id, refused-2: proposals[1].id"},
		"needs a refused one": {[]string{`{"id":"bad","run":5}`, `{"id":"b","run":"ls","needs":["bad"]}`}, "bad: proposals[0].run, b"},
		"needs a shared id":   {[]string{`{"id":"a","run":"ls"}`, `{"id":"a","run":"ls"}`, `{"id":"b","run":"ls","needs":["a"]}`}, "a: proposals[0].id, refused-2: proposals[1].id, b"},
		"needs nothing known": {[]string{good, `{"id":"b","run":"ls","needs":["goood"]}`}, "good, b: proposals[1].needs[0]"},
		"needs itself":        {[]string{good, `{"id":"b","run":"ls","needs":["b"]}`}, "good, b: proposals[1].needs[0]"},
		"needs a later one":   {[]string{`{"id":"b","run":"ls","needs":["good"]}`, good}, "b: proposals[0].needs[0], good"},
		"cycle":               {[]string{`{"id":"a","run":"ls","needs":["b"]}`, `{"id":"b","run":"ls","needs":["a"]}`, good}, "a: proposals[0].needs[0], b, good"},
		"set-up is first":     {[]string{good, `{"id":"s1","run":"ls","phase":"setup"}`, `{"id":"r","run":"ls","phase":"run"}`, `{"id":"s2","run":"ls","phase":"setup"}`}, "s1, s2, good, r"},
		"set-up needs a run":  {[]string{good, `{"id":"s","run":"ls","phase":"setup","needs":["good"]}`}, "s: proposals[1].needs[0], good"},
		"needs later set-up":  {[]string{`{"id":"b","run":"ls","needs":["s"]}`, `{"id":"s","run":"ls","phase":"setup"}`}, "s, b"},
		"refused set-up":      {[]string{good, `{"id":"s","run":5,"phase":"setup"}`}, "s: proposals[1].run, good"},
		"too deep":            {[]string{good, strings.Repeat("[", document.MaxDepth) + strings.Repeat("]", document.MaxDepth)}, "good, refused-2: proposals[1]"},
		"bidirectional":       {[]string{good, "{\"id\":\"a\",\"run\":\"ls \u202e\"}"}, "good, a: proposals[1].run"},
		"invisible name":      {[]string{good, "{\"id\":\"a\",\"run\":\"ls\", \"ti\u200bmeout\": \"5s\"}"}, "good, a: proposals[1][\"ti\ufffdmeout\"]"},
		"needs a text":        {[]string{good, `{"id":"b","run":"ls","needs":"good"}`, `{"id":"c","run":"ls","needs":"goood"}`}, "good, b, c: proposals[2].needs"},
		"left-out fields":     {[]string{`{"id":"a","run":"ls","why":null,"expect":"","needs":[],"network":[],"env":{},"limits":{"memory":null},"timeout":"","phase":null,"outputs":null,"cwd":"","stdin":"","new-sandbox":null}`}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			p, problems := Decode([]byte(planWith(c.proposals...)), "")
			if len(problems) > 0 {
				t.Fatalf("rejected: %v", problems)
			}
			var got []string
			for _, one := range p.Proposals {
				s := one.ID
				if one.Invalid != nil {
					s += ": " + one.Invalid.Problems[0].Path
				}
				got = append(got, s)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, p.Refused())
			}
		})
	}
}

// A field that is left out, null or empty gives the same proposal.
func TestLeftOut(t *testing.T) {
	want := mustDecode(t, []byte(planWith(`{"id":"a","run":"ls","limits":{"memory":1024}}`)), "").Proposals
	for _, fields := range []string{
		`"why":null,"expect":null,"needs":null,"network":null,"env":null,"timeout":null,"phase":null,"outputs":null,"cwd":null,"stdin":null,"new-sandbox":null`,
		`"why":"","expect":"","needs":[],"network":[],"env":{},"timeout":"","phase":"","outputs":[],"cwd":"","stdin":""`,
	} {
		doc := planWith(`{"id":"a","run":"ls","limits":{"memory":1024,"cpus":null,"wall":null,"disk":null},` + fields + `}`)
		if err := validate(t, golden.ReadSchema(t, published), []byte(doc)); err != nil {
			t.Errorf("the schema refuses it: %v", err)
		}
		for _, name := range []string{"p.json", "p.yaml"} {
			if diff := cmp.Diff(want, mustDecode(t, []byte(doc), name).Proposals); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// What makes the rest of a document doubtful rejects it as a whole.
func TestRejectedWhole(t *testing.T) {
	const good = `{"id":"good","run":"ls"}`
	for name, doc := range map[string]string{
		"no JSON":                          planWith(good) + "x",
		"no schema":                        `{"proposals":[` + good + `]}`,
		"another schema":                   strings.Replace(planWith(good), "plan/v1", "plan/v2", 1),
		"proposals twice":                  `{"schema":"fumehood.plan/v1","proposals":[` + good + `],"proposals":[` + good + `]}`,
		"no proposals":                     planWith(),
		"null proposals":                   `{"schema":"fumehood.plan/v1","proposals":null}`,
		"unknown field":                    `{"schema":"fumehood.plan/v1","x":1,"proposals":[` + good + `]}`,
		"too many":                         planWith(many(maxProposals + 1)...),
		"too large":                        planWith(good, `{"id":"a","run":"ls","why":"`+strings.Repeat("x", MaxDocument)+`"}`),
		"bidirectional":                    "schema: fumehood.plan/v1 # \u202e\nproposals: [" + good + "]",
		"bidirectional, outside of values": "{\u202e" + planWith(good)[1:],
		"two documents":                    "schema: fumehood.plan/v1\nproposals: [{id: a, run: ls}]\n---\nschema: fumehood.plan/v1\nproposals: [{id: a, run: ls}]\n",
		"not valid as UTF-8":               planWith(good, "{\"id\":\"a\",\"run\":\"\xff\"}"),
		"wrong in and outside":             `{"schema":"fumehood.plan/v1","x":1,"proposals":[{"id":"a","run":5}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			p, problems := Decode([]byte(doc), "")
			if len(problems) == 0 || p.Proposals != nil || p.Digest == "" {
				t.Errorf("problems %v, plan %+v", problems, p)
			}
		})
	}
}

func many(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf(`{"id":"p%d","run":"ls"}`, i))
	}
	return list
}

// What was proposed is kept, for people, and not longer than the document.
func TestRefusedText(t *testing.T) {
	p, _ := Decode([]byte("schema: fumehood.plan/v1\nproposals:\n- id: unit\n  run: |\n    go test ./...\n    echo \"$?\"\n  timeout: soon\n  argv: [a, b]\n  env: {A: b, C: 1}\n- 12\n"), "p.yaml")
	got := p.Proposals[0].Invalid.Text + "--\n" + p.Proposals[1].Invalid.Text
	const want = "id: unit\nrun: go test ./...\necho \"$?\"\n\ntimeout: soon\nargv: [a,b]\nenv: {A:b,C:1}\n--\n12"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A set-up proposal that is moved is named in a warning.
func TestMovedWarning(t *testing.T) {
	doc := "schema: fumehood.plan/v1\nproposals:\n- {id: a, run: ls}\n- {id: s, run: ls, phase: setup}\n"
	const want = "p.yaml:4:27: proposals[1].phase: is setup: it runs before proposals[0] in line 3"
	if w := Warnings([]byte(doc), "p.yaml"); len(w) != 1 || Describe("p.yaml", w[0]) != want {
		t.Errorf("warnings %v, want %s", w, want)
	}
}

// A hostile plan, of proposals that all need ids that almost exist, is read in bounded time.
func TestRefusedSoon(t *testing.T) {
	lanetest.SkipShort(t)
	var list []string
	for i := range maxProposals {
		var needs []string
		for k := range 64 {
			needs = append(needs, fmt.Sprintf(`"%s%04d"`, strings.Repeat("x", 60), 9000+k))
		}
		list = append(list, fmt.Sprintf(`{"id":"%s%04d","run":"ls","needs":[%s]}`, strings.Repeat("y", 60), i, strings.Join(needs, ",")))
	}
	doc := []byte(planWith(list...))
	if len(doc) > MaxDocument {
		t.Fatalf("the plan has %d bytes", len(doc))
	}
	start := time.Now()
	p, problems := Decode(doc, "")
	if len(problems) > 0 || len(p.Refused()) != maxProposals*valid.MaxInvalid {
		t.Errorf("%d problems, %d refused", len(problems), len(p.Refused()))
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	} else {
		t.Logf("took %s", took)
	}
}
