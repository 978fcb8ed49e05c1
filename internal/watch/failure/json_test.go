// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A document that is cut, wrong, deep or among other lines is read as far as it goes, and nothing else
// that is JSON is a failure.
func TestJSON(t *testing.T) {
	const test = `{"stats":{},"failures":[{"fullTitle":"cart adds","file":"a.js","err":{"message":"no list","stack":"Error: no list\n    at f (/workspace/a.js:3:1)"}}`
	problem := `[{"filePath":"/workspace/a.js","messages":[{"ruleId":"no-undef","severity":2,"message":"x","line":3,"column":1}]}]`
	for _, row := range []struct{ name, out, want string }{
		{"complete", test + "]}", "cart adds: Error: no list a.js:3"},
		{"cut", test, "cart adds: Error: no list a.js:3"},
		{"between lines", "> shop@1.0.0 test\n> mocha\n\n" + test + "]}\nnpm error 1\n", "cart adds: Error: no list a.js:3"},
		{"after what is not JSON", "[webpack] compiled\n{ a\n  " + problem, "x a.js:3"},
		{"the second", problem + "\n" + strings.Replace(problem, "line\":3", "line\":4", 1), "x a.js:3, x a.js:4"},
		{"a log", `{"level":"error","file":"a.js","line":3,"message":"x"}`, ""},
		{"outside", strings.Replace(problem, "/workspace/a.js", "/etc/passwd", 1), ""},
		{"other types", `{"testResults":[1,{"assertionResults":{"status":"failed"}},{"assertionResults":[null,"failed"]}],"stats":1,"failures":[[],{}],"examples":"x"}`, ""},
		{"large numbers", strings.Replace(problem, `"line":3`, `"line":1e99`, 1), ""},
		{"empty", "[]", ""},
		{"escapes", strings.Replace(problem, `"x"`, `"\u001b[2Jx\u001e\u0007"`, 1), "x a.js:3"},
	} {
		var got []string
		for _, d := range readOutput([]byte(row.out), nil, Options{Tree: NewTree([]string{"a.js"}, true)}) {
			got = append(got, FormatLine(d)+" "+placeOf(d))
		}
		if strings.Join(got, ", ") != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// A problem has the name of its linter where its keys are no other's.
func TestJSONTools(t *testing.T) {
	for problem, want := range map[string]string{
		`"ruleId":"no-undef","message":"x","line":3`:                                "eslint no-undef",
		`"code":2086,"message":"x","line":3`:                                        "shellcheck SC2086",
		`"cop_name":"Style/If","message":"x","location":{"line":3}`:                 "rubocop Style/If",
		`"FromLinter":"errcheck","Text":"x","Pos":{"Line":3}`:                       "golangci-lint errcheck",
		`"code":"F401","message":"x","location":{"row":3}`:                          "linter F401",
		`"rule":"reportX","message":"x","range":{"start":{"line":2,"character":0}}`: "linter reportX",
	} {
		got := readOutput([]byte(`[{"file":"a.js",`+problem+`}]`), nil, Options{Tree: NewTree([]string{"a.js"}, true)})
		if len(got) != 1 || got[0].Tool+" "+got[0].Rule != want || got[0].Line != 3 {
			t.Errorf("%s: %+v", problem, got)
		}
	}
}

// Hostile documents are read up to a number of values, whatever their form.
func TestHostileJSON(t *testing.T) {
	lanetest.SkipShort(t)
	for name, unit := range map[string]string{"lists": "[", "objects": `{"a":`, "lines": "[\n", "list of lists": "[[],", "documents": "{}\n", "strings": `["` + strings.Repeat("\\u0000", 100) + "\",\n"} {
		text := strings.Repeat(unit, maxBytes/len(unit))
		docs := parseJSON([]byte(text))
		var count func(v value) int
		count = func(v value) int {
			n := 1
			switch v := v.(type) {
			case []value:
				for _, e := range v {
					n += count(e)
				}
			case map[string]value:
				for _, e := range v {
					n += count(e)
				}
			}
			return n
		}
		if n := count(docs); n > maxJSONValues+1 {
			t.Errorf("%s: %d values", name, n)
		}
		for _, d := range Diagnostics(&proposal.Result{Stdout: proposal.Stream{Head: []byte(text)}}, Options{}) {
			t.Errorf("%s: %s", name, fmt.Sprint(d))
		}
	}
}

// Reading a stack of any length needs memory in proportion to it.
func TestBacktraceIsLinear(t *testing.T) {
	allocated := func(frames int) uint64 {
		doc := `{"examples":[{"full_description":"x","status":"failed","exception":{"message":"m","backtrace":["a.rb:1"` + strings.Repeat(`,"a.rb:1"`, frames) + `]}}]}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if list := readOutput([]byte(doc), nil, Options{}); len(list) != 1 {
			t.Fatalf("%d reports", len(list))
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(1)
	if few, many := allocated(5000), allocated(40000); many > 16*few {
		t.Errorf("%d bytes for 5000 frames, %d for 40000", few, many)
	}
}
