// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/bounds"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A tower doubles what a rule before it made: after thirty rules it is more than any
// memory holds, and no single step is odd.
func tower(first, step string, levels int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "t0 := %s\n\n", first)
	for i := range levels {
		fmt.Fprintf(&b, "t%d := %s\n\n", i+1, strings.ReplaceAll(step, "PREV", fmt.Sprintf("t%d", i)))
	}
	return b.String()
}

const thousand = `concat("", [x | some x in split("` + "0123456789,0123456789,0123456789,0123456789,0123456789,0123456789,0123456789,0123456789,0123456789,0123456789" + `", ",")])`

// bombs are policies that try to exhaust the process that evaluates them: helpers, and a
// condition that needs them.
var bombs = map[string]struct{ rules, condition string }{
	"loop":               {"", `count([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); some c in numbers.range(1, 3000); a + b == c]) == 1`},
	"comprehension":      {"", `count([[a, b] | some a in numbers.range(1, 30000); some b in numbers.range(1, 30000)]) == 1`},
	"object":             {"", `count({sprintf("%d %d", [a, b]): a | some a in numbers.range(1, 30000); some b in numbers.range(1, 30000)}) == 1`},
	"range":              {"", `count(numbers.range(1, 1000000000)) == 1`},
	"range step":         {"", `count(numbers.range_step(1, 1000000000, 1)) == 1`},
	"range of exponents": {"", `count(numbers.range(1, to_number("1e18"))) == 1`},
	"cidr":               {"", `count(net.cidr_expand("::/1")) == 1`},
	"cidr 4":             {"", `count(net.cidr_expand("0.0.0.0/0")) == 1`},
	"concat":             {tower(`"xxxxxxxxxxxxxxxx"`, `concat("", [PREV, PREV, PREV, PREV])`, 30), `count(t30) == 1`},
	"concat delimiter":   {tower(`"xxxxxxxxxxxxxxxx"`, `concat(PREV, ["a", "b", "c", "d", "e"])`, 30), `count(t30) == 1`},
	"sprintf":            {tower(`"xxxxxxxxxxxxxxxx"`, `sprintf("%v%v%[1]v%[1]q", [PREV, PREV])`, 30), `count(t30) == 1`},
	"sprintf width":      {"", `count(sprintf("%999999d%999999d%999999d%999999d%999999d%999999d", [1, 2, 3, 4, 5, 6])) == 1`},
	"sprintf star":       {"", `count(sprintf("%*d%*d", [999999, 1, 999999, 1])) == 1`},
	"replace":            {tower(`"xxxxxxxxxxxxxxxx"`, `replace(PREV, "x", "xxxxxxxx")`, 30), `count(t30) == 1`},
	"replace empty":      {tower(`"xxxxxxxxxxxxxxxx"`, `replace(PREV, "", PREV)`, 30), `count(t30) == 1`},
	"replace_n":          {tower(`"xxxxxxxxxxxxxxxx"`, `strings.replace_n({"x": "xxxxxxxx"}, PREV)`, 30), `count(t30) == 1`},
	"regex.replace":      {tower(`"xxxxxxxxxxxxxxxx"`, `regex.replace(PREV, "x*", "$0$0$0$0$0")`, 30), `count(t30) == 1`},
	"base64":             {tower(thousand, `base64.encode(base64.encode(base64.encode(base64.encode(PREV))))`, 30), `count(t30) == 1`},
	"hex":                {tower(thousand, `hex.encode(hex.encode(PREV))`, 30), `count(t30) == 1`},
	"urlquery":           {tower(`"%%%%%%%%"`, `urlquery.encode(PREV)`, 40), `count(t40) == 1`},
	"json.marshal":       {tower(`"\"\"\"\""`, `json.marshal([PREV, PREV])`, 40), `count(t40) == 1`},
	"nested arrays":      {tower(`[1, 1]`, `[PREV, PREV]`, 60), `json.marshal(t60) != ""`},
	"nested sprintf":     {tower(`[1, 1]`, `[PREV, PREV]`, 60), `sprintf("%v", [t60]) != ""`},
	"nested flatten":     {tower(`[1, 1]`, `[PREV, PREV]`, 60), `count(array.flatten(t60)) == 1`},
	"nested equal":       {tower(`[1, 1]`, `[PREV, PREV]`, 60) + strings.ReplaceAll(tower(`[1, 1]`, `[PREV, PREV]`, 60), "t", "u"), `t60 == u60`},
	"nested sets":        {tower(`{1}`, `{PREV, [PREV]}`, 8), `count({x | some x in t8; some y in t8; x == y}) == 1`},
	"nested union":       {tower(`{"a": 1, "b": 2}`, `{"a": PREV, "b": PREV}`, 60), `count(object.union(t60, {"a": t59})) == 1`},
	"nested filter":      {tower(`{"a": 1, "b": 2}`, `{"a": PREV, "b": PREV}`, 60), `count(json.filter(t60, ["a/b/c"])) == 1`},
	"arrays":             {tower(`[1, 1]`, `array.concat(PREV, PREV)`, 60), `count(t60) == 1`},
	"split":              {tower(`"xxxxxxxx"`, `concat("", [PREV, PREV])`, 18), `count([s | some _ in numbers.range(1, 60000); s := split(t18, "")]) == 1`},
	"strings kept":       {tower(`"xxxxxxxx"`, `concat("", [PREV, PREV])`, 17), `count([s | some a in numbers.range(1, 60000); s := concat(sprintf("%d", [a]), [t17, "x"])]) == 1`},
	"substrings kept":    {tower(`"xXxXxXxX"`, `concat("", [PREV, PREV])`, 17), `count([s | some _ in numbers.range(1, 60000); s := upper(t17)]) == 1`},
	"regex":              {tower(`"aaaaaaaa"`, `concat("", [PREV, PREV])`, 17), `regex.match("^(((a?){100}){10})*b$", t17)`},
	"regex size":         {"", `regex.match("((((((x{1,9}){1,9}){1,9}){1,9}){1,9}){1,9}){1,9}", "x")`},
	"regex.find":         {tower(`"aaaaaaaa"`, `concat("", [PREV, PREV])`, 17), `count(regex.find_n("(a*)*b", t17, -1)) == 1`},
	"glob":               {tower(`"aaaaaaaa"`, `concat("", [PREV, PREV])`, 12), `glob.match("{a*a*a*a*a*a*a*,*a*a*a*a*a*}b", [], t12)`},
	"glob pattern":       {"", `glob.match("` + strings.Repeat("{a,b}", 60) + `", [], "` + strings.Repeat("a", 59) + `c")`},
	"prefixes":           {tower(`"aaaaaaaa"`, `concat("", [PREV, PREV])`, 17), `strings.any_prefix_match([t17 | some _ in numbers.range(1, 60000)], [t16 | some _ in numbers.range(1, 60000)])`},
	"number":             {"", `to_number("1e999999999") + 1 > 0`},
	"number tower":       {tower(`1e300`, `PREV * PREV`, 40), `t40 > 1`},
	"number modulo":      {"", `to_number("1e400000000") % 7 == 1`},
	"number format":      {tower(`1e300`, `PREV * PREV`, 40), `format_int(t40, 2) != ""`},
	"number units":       {"", `units.parse("1e999999999Ei") > 1`},
	"number compared":    {"", `to_number("1e999999999") > to_number("1e999999998")`},
	"number json":        {"", `json.unmarshal("1e999999999") + json.unmarshal("1e999999999") > 1`},
	"number shifted":     {"", `bits.rsh(1, -8000000000) > 1`},
	"json":               {tower(`"[["`, `concat("", [PREV, PREV])`, 18), `json.unmarshal(t18) != 1`},
	"json wide":          {tower(`"0,0,0,0,"`, `concat("", [PREV, PREV])`, 17), `count(json.unmarshal(concat("", ["[", t17, "0]"]))) == 1`},
	"graph":              {"", `count(graph.reachable({sprintf("%d", [a]): ["1", "2"] | some a in numbers.range(1, 60000)}, {"1"})) == 1`},
	"cidr merge":         {"", `count(net.cidr_merge([sprintf("10.%d.%d.%d/32", [a, b, c]) | some a in numbers.range(0, 255); some b in numbers.range(0, 255); some c in numbers.range(0, 255)])) == 1`},
	"sort":               {"", `count(sort([sprintf("%d", [a * b]) | some a in numbers.range(1, 60000); some b in numbers.range(1, 60000)])) == 1`},
	"product":            {"", `product(numbers.range(1, 60000)) == 1`},
	"sum":                {"", `sum([product([a, b]) | some a in numbers.range(1, 60000); some b in numbers.range(1, 60000)]) == 1`},
	"time":               {"", `time.add_date(0, 999999999999, 999999999999, 999999999999) == 1`},
	"semver":             {tower(`"99999999"`, `concat("", [PREV, PREV])`, 17), `semver.compare(concat("", [t17, ".0.0"]), "1.0.0") == 1`},
	"slices":             {"", `count([s | some a in numbers.range(1, 60000); s := array.slice(numbers.range(1, 60000), 0, a)]) == 1`},
	"flattened":          {"", `count(array.flatten([[numbers.range(1, 60000), numbers.range(1, 60000)] | some _ in numbers.range(1, 60000)])) == 1`},
	"intersections":      {"", `count(intersection({{product([a, b]) | some b in numbers.range(1, 60000)} | some a in numbers.range(1, 60000)})) == 1`},
	"template":           {tower(`"xxxxxxxxxxxxxxxx"`, `$"{PREV}{PREV}{PREV}{PREV}"`, 30), `count(t30) == 1`},
	"nested template":    {tower(`[1, 1]`, `[PREV, PREV]`, 60), `count($"{t60}") == 1`},
	"answers":            {"", ""},
	"huge answer":        {tower(`[1, 1]`, `[PREV, PREV]`, 60), "answer"},
}

func bomb(name string) string {
	b := bombs[name]
	head := "package fumehood.command\n\n" + b.rules
	switch {
	case b.condition == "answer":
		return head + "deny contains {\"rule\": t60, \"message\": \"m\", \"suggestion\": \"s\"}\n"
	case b.condition == "":
		return head + "deny contains {\"rule\": \"x.y\", \"message\": sprintf(\"%d %d\", [a, b]), \"suggestion\": \"s\"} if {\n\tsome a in numbers.range(1, 1000)\n\tsome b in numbers.range(1, 1000)\n}\n"
	}
	return head + "deny contains {\"rule\": \"x.y\", \"message\": \"m\", \"suggestion\": \"s\"} if " + b.condition + "\n"
}

// maxRSS is what a process that decides by a bomb may take at most.
const maxRSS = 1200 << 20

// TestBombs holds that no policy exhausts who decides by it: there is an answer, or
// none, soon, in bounded memory; never an allow.
func TestBombs(t *testing.T) {
	lanetest.SkipShort(t)
	if name := os.Getenv("FUMEHOOD_BOMB"); name != "" {
		explode(t, name)
		return
	}
	for _, name := range sample.EveryNthKey(t, bombs, 4, 8) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBombs$", "-test.v")
			cmd.Env = append(os.Environ(), "FUMEHOOD_BOMB="+name, "GOMEMLIMIT=off")
			out, err := cmd.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("harmless:")) {
				t.Fatalf("%v\n%.2000s", err, out)
			}
			if rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10; rss > maxRSS {
				t.Errorf("took %d MiB", rss>>20)
			} else {
				line := out[bytes.Index(out, []byte("harmless:")):]
				t.Logf("%d MiB, %.200s", rss>>20, bytes.SplitN(line, []byte("\n"), 2)[0])
			}
		})
	}
}

func explode(t *testing.T, name string) {
	l := policy.Layer{Name: "bomb", Role: policy.Grants, Files: []policy.File{{Name: "a.rego", Content: []byte(bomb(name))}}}
	o := policy.Options{Layers: []policy.Layer{l}, Deadline: 50 * time.Millisecond}
	if sample.IsWhole() {
		o.Deadline = 0 // as in a run
	}
	e, err := policy.New(t.Context(), o)
	if err != nil {
		if !strings.Contains(err.Error(), "policy.deadline") && !strings.Contains(err.Error(), "too large") {
			t.Fatalf("it is not a bomb: %v", err)
		}
		fmt.Printf("harmless: not loaded: %v\n", err)
		return
	}
	p := proposal.Proposal{ID: "t", Run: "sudo x"}
	began := bounds.ProcessorTime()
	d, err := e.Decide(t.Context(), p, parse.Analyze(p))
	used := bounds.ProcessorTime() - began
	if used > 10*time.Second { // the deadline, the grace, and the garbage collector
		t.Fatalf("used %v of processor time", used)
	}
	if d.Effect == proposal.Allow || d.Grant != nil {
		t.Fatalf("allowed: %+v", d)
	}
	fmt.Printf("harmless: %v after %v: %v\n", d.Effect, used, err)
}
