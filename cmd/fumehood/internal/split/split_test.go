// SPDX-License-Identifier: Apache-2.0

package split

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// randomPlan returns a valid plan of count proposals, and durations of some.
func randomPlan(r *rand.Rand, count int) (proposal.Plan, Durations) {
	p, d := proposal.Plan{Schema: proposal.PlanSchema}, Durations{}
	setups := r.IntN(3)
	for i := range count {
		one := proposal.Proposal{ID: fmt.Sprintf("p%d", i), Run: "true", Fresh: r.IntN(9) == 0, Phase: proposal.PhaseRun}
		if i < setups {
			one.Phase = proposal.PhaseSetup
		}
		if i > 0 && r.IntN(4) == 0 {
			one.Needs = []string{fmt.Sprintf("p%d", r.IntN(i))}
		}
		if r.IntN(3) > 0 {
			d.AddDuration(one.ID, time.Duration(1+r.IntN(1000))*time.Millisecond)
		}
		p.Proposals = append(p.Proposals, one)
	}
	return p, d
}

// checkSplit checks what Split promises about every plan without an Invalid proposal.
func checkSplit(t *testing.T, p proposal.Plan, n int, took func(string) (time.Duration, bool)) {
	t.Helper()
	parts := SplitPlan(p, n, took)
	if !reflect.DeepEqual(parts, SplitPlan(p, n, took)) || len(parts) == 0 || len(parts) > max(n, 1) {
		t.Fatalf("%d parts of %d, or not the same twice", len(parts), n)
	}
	at := map[string][]int{}
	for k, part := range parts {
		last := -1
		for _, one := range part.Proposals {
			i := slices.IndexFunc(p.Proposals, func(o proposal.Proposal) bool { return o.ID == one.ID })
			if i <= last {
				t.Fatalf("part %d: %s is out of order", k, one.ID)
			}
			last, at[one.ID] = i, append(at[one.ID], k)
		}
	}
	for _, one := range p.Proposals {
		want := 1
		if one.Phase == proposal.PhaseSetup {
			want = len(parts)
		}
		if len(at[one.ID]) != want {
			t.Fatalf("%s is in %d parts, want %d", one.ID, len(at[one.ID]), want)
		}
		for _, need := range one.Needs {
			for _, k := range at[one.ID] {
				if !slices.Contains(at[need], k) {
					t.Fatalf("%s needs %s, which is in another part", one.ID, need)
				}
			}
		}
	}
}

func TestSplitProperties(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		p, d := randomPlan(r, 1+r.IntN(40))
		checkSplit(t, p, r.IntN(12), d.Took)
	}
}

// The longest part is at most 4/3 of the optimum, which is at least the mean and the longest.
func TestSplitBalance(t *testing.T) {
	p, d := proposal.Plan{}, Durations{}
	for i, s := range []int{7, 7, 6, 6, 5, 5, 4, 4, 4} { // Graham's own worst case for 4 machines: 15 of 12
		id := fmt.Sprint("p", i)
		p.Proposals = append(p.Proposals, proposal.Proposal{ID: id, Run: "true"})
		d.AddDuration(id, time.Duration(s)*time.Second)
	}
	for _, part := range SplitPlan(p, 4, d.Took) {
		sum := time.Duration(0)
		for _, one := range part.Proposals {
			sum += d[one.ID]
		}
		if sum > 15*time.Second {
			t.Errorf("a part takes %s", sum)
		}
	}
	if parts := SplitPlan(p, 100, nil); len(parts) != 9 {
		t.Errorf("%d parts, want one for each", len(parts))
	}
}

// manyLong is a plan of n proposals that have so many bytes of standard input each.
func manyLong(n, size int) string {
	p := proposal.Plan{Schema: proposal.PlanSchema}
	for i := range n {
		p.Proposals = append(p.Proposals, proposal.Proposal{ID: fmt.Sprint("p", i), Run: "cat", Stdin: strings.Repeat("x", size)})
	}
	data, _ := json.Marshal(p)
	return string(data)
}

func TestMatrix(t *testing.T) {
	const text = `{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"true","new-sandbox":true,"timeout":"90s","limits":{"memory":"1GiB"}},{"id":"b","argv":["true"],"cache":true},{"id":"c","run":"x","needs":["a"]}]}`
	for name, c := range map[string]struct {
		document string
		n, parts int
		code     string
	}{
		"two":                      {text, 2, 2, ""},
		"one":                      {text, 1, 1, ""},
		"invalid":                  {strings.Replace(text, `"cache"`, `"cash"`, 1), 2, 1, ""},
		"not a plan":               {"x", 2, 1, ""},
		"too large":                {strings.Replace(text, `"x"`, `"`+strings.Repeat("x", maxPart)+`"`, 1), 2, 0, "split.too-large"},
		"parts too large together": {manyLong(6, maxPart*2/5), 3, 0, "split.too-large"},
		"yaml, padded":             {"schema: fumehood.plan/v1\nproposals:\n  - {id: a, run: a}\n", 3, 1, ""},
	} {
		data, err := MakeMatrix([]byte(c.document), "plan", c.n, nil)
		if c.code != "" {
			if f := proposal.FailureOf(err); f == nil || f.Code != c.code || f.Hint == "" || strings.Contains(f.Message, "the matrix") != strings.Contains(name, "together") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var m struct{ Include []entry }
		if err := errors.Join(err, json.Unmarshal(data, &m)); err != nil || len(m.Include) != c.parts {
			t.Fatalf("%s: %v\n%s", name, err, data)
		}
		for i, e := range m.Include {
			if k, n, ok := ParsePart(e.Name); !ok || k != i+1 || n != c.parts {
				t.Errorf("%s: %q", name, e.Name)
			}
			if c.parts > 1 && len(plan.Warnings([]byte(e.Plan), "p.json")) > 0 {
				t.Errorf("%s: warnings about %s", name, e.Plan)
			}
			if c.parts == 1 && strings.TrimSpace(e.Plan) != strings.TrimSpace(c.document) {
				t.Errorf("%s: the only part is %q", name, e.Plan)
			}
		}
	}
}

// FuzzMatrix checks that the parts of any plan are, after reading, all of it.
func FuzzMatrix(f *testing.F) {
	f.Add([]byte(`{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"<&>","env":{"A":"b"}},{"id":"b","code":"1","language":"python","phase":"setup"},{"id":"c","run":"true"}]}`), 2)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		p, problems := plan.Decode(data, "plan.json")
		matrix, err := MakeMatrix(data, "plan.json", n, nil)
		if err != nil || len(problems) > 0 || len(p.Refused()) > 0 {
			return
		}
		checkSplit(t, p, n, nil)
		var m struct{ Include []entry }
		if err := json.Unmarshal(matrix, &m); err != nil {
			t.Fatal(err)
		}
		parts := SplitPlan(p, n, nil)
		for i, e := range m.Include {
			got, problems := plan.Decode([]byte(e.Plan), "plan.json")
			got.Digest, parts[i].Digest = "", ""
			if len(problems) > 0 || !reflect.DeepEqual(got, parts[i]) {
				t.Fatalf("%v\n%+v\n%+v", problems, got, parts[i])
			}
		}
	})
}

func TestReadDurationsHostile(t *testing.T) {
	many := Durations{}
	for i := range maxDurations {
		many.AddDuration(fmt.Sprint("p", i), time.Second)
	}
	full, err := many.JSON()
	if d, bad := ReadDurations(bytes.NewReader(full)); err != nil || bad != nil || !reflect.DeepEqual(d, many) {
		t.Fatalf("%v, %v", err, bad)
	}
	file := func(entries string) string {
		return `{"schema":"fumehood.durations/v1","milliseconds":{` + entries + `}}`
	}
	for name, data := range map[string]string{
		"empty": "", "null": "null", "list": "[]", "schema": `{"schema":"x","milliseconds":{}}`, "unknown field": `{"schema":"fumehood.durations/v1","x":1}`,
		"two": file("") + file(""), "zero": file(`"a":0`), "negative": file(`"a":-1`), "overflow": file(`"a":9223372036854775807`),
		"fraction": file(`"a":1.5`), "long": file(`"a":21600001`), "id": file(`"a\nb":1`), "no id": file(`"":1`),
		"many": strings.Replace(string(full), `"p0"`, `"x":1,"p0"`, 1), "large": file("") + strings.Repeat(" ", MaxDurationsFile),
	} {
		if d, err := ReadDurations(strings.NewReader(data)); err == nil || d != nil {
			t.Errorf("%s: %d accepted", name, len(d))
		}
	}
}

func FuzzReadDurations(f *testing.F) {
	f.Add([]byte(`{"schema":"fumehood.durations/v1","milliseconds":{"a":5}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ReadDurations(bytes.NewReader(data))
		for id, took := range d {
			if err != nil || id == "" || took <= 0 || took > MaxDuration {
				t.Fatalf("%q: %s, %v", id, took, err)
			}
		}
	})
}
