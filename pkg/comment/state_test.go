// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fumehood/fumehood/pkg/internal/sample"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var fullState = State{
	Result: &Result{
		Stamp: Stamp{Head: strings.Repeat("a", 40), RunID: 12345678901, Attempt: 2}, Conclusion: "asked",
		Totals: proposal.Totals{Proposed: 6, Allowed: 5, Denied: 4, Asked: 3, Succeeded: 2, Failed: 1},
	},
	Pending: []Pending{{Name: "lint --> x", PlanDigest: digest("c"), Policy: digest("d"), RunID: 12345678901, Artifact: "fumehood", ArtifactID: 42}},
	Earlier: []Result{{Stamp: Stamp{Head: strings.Repeat("b", 40), RunID: 12345678900, Attempt: 1}, Conclusion: "denied"}},
	Starts:  []Start{{RunID: 12345678900, Day: 20778}, {RunID: 12345678901, Day: 20778}},
	Dropped: Dropped{Count: 3, Through: 12345678890},
	Notice:  Answered{Comment: 2345678901, Cleared: true},
}

// fullLine fixes the format, to the byte.
const fullLine = `<!-- fumehood:state {"v":1,` +
	`"result":{"head":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","run":12345678901,"attempt":2,"said":"asked","totals":[6,5,4,3,2,1]},` +
	`"pending":[{"name":"lint -\u002d\u003e x","plan":"sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc",` +
	`"policy":"sha256:dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd","run":12345678901,"artifact":"fumehood","artifact_id":42}],` +
	`"earlier":[{"head":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","run":12345678900,"attempt":1,"said":"denied","totals":[0,0,0,0,0,0]}],` +
	`"starts":[[12345678900,20778],[12345678901,20778]],"dropped":{"count":3,"through":12345678890},` +
	`"notice":{"comment":2345678901,"cleared":true}} -->`

func TestStateLine(t *testing.T) {
	line, err := encodeState(fullState)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fullLine, line); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, err := decodeState(fullLine)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fullState, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if line, err := encodeState(State{}); line != `<!-- fumehood:state {"v":1} -->` || err != nil {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestStateLineRefused(t *testing.T) {
	swap := func(old, new string) string {
		line := strings.Replace(fullLine, old, new, 1)
		if line == fullLine {
			panic(old)
		}
		return line
	}
	tests := []struct{ name, line string }{
		{"empty", ""},
		{"another comment", "<!-- hello -->"},
		{"not closed", strings.TrimSuffix(fullLine, lineEnd)},
		{"text behind", fullLine + " x"},
		{"no JSON", lineStart + "x" + lineEnd},
		{"null", lineStart + "null" + lineEnd},
		{"a list", lineStart + "[]" + lineEnd},
		{"two values", lineStart + `{"v":1}{"v":1}` + lineEnd},
		{"another version", swap(`"v":1`, `"v":2`)},
		{"no version", swap(`"v":1,`, ``)},
		{"unknown field", swap(`"v":1`, `"v":1,"x":1`)},
		{"unknown inner field", swap(`"attempt":2`, `"attempt":2,"x":1`)},
		{"field in capitals", swap(`"pending"`, `"Pending"`)},
		{"field twice", swap(`"v":1`, `"v":1,"v":1`)},
		{"a blank", swap(`"v":1`, `"v": 1`)},
		{"another order", swap(`"count":3,"through":12345678890`, `"through":12345678890,"count":3`)},
		{"another spelling of a number", swap(`"attempt":2`, `"attempt":2.0`)},
		{"another spelling of a text", swap(`"said":"asked"`, `"said":"\u0061sked"`)},
		{"two minuses as they are", swap(`-\u002d`, `--`)},
		{"a bracket as it is", swap(`\u003e`, `>`)},
		{"an empty list", lineStart + `{"v":1,"pending":[]}` + lineEnd},
		{"an empty notice", lineStart + `{"v":1,"notice":{"comment":0,"cleared":false}}` + lineEnd},
		{"cleared nothing", lineStart + `{"v":1,"notice":{"comment":0,"cleared":true}}` + lineEnd},
		{"negative comment", swap(`"comment":2345678901`, `"comment":-1`)},
		{"huge number", swap(`"comment":2345678901`, `"comment":9007199254740993`)},
		{"a number that does not fit", swap(`"comment":2345678901`, `"comment":99999999999999999999`)},
		{"short head", swap(strings.Repeat("a", 40), strings.Repeat("a", 39))},
		{"head in capitals", swap(strings.Repeat("a", 40), strings.Repeat("A", 40))},
		{"unknown word", swap(`"said":"asked"`, `"said":"merged"`)},
		{"negative total", swap(`[6,5`, `[-6,5`)},
		{"huge total", swap(`[6,5`, `[100001,5`)},
		{"five totals", swap(`[6,5,4,3,2,1]`, `[6,5,4,3,2]`)},
		{"seven totals", swap(`[6,5,4,3,2,1]`, `[6,5,4,3,2,1,0]`)},
		{"no digest", swap("sha256:c", "sha512:c")},
		{"name with a newline", swap("lint ", `lint\n`)},
		{"starts out of order", swap(`[12345678900,20778],[12345678901,20778]`, `[12345678901,20778],[12345678900,20778]`)},
		{"a start twice", swap(`[12345678900,20778]`, `[12345678901,20778]`)},
		{"a start that was dropped", swap(`"through":12345678890`, `"through":12345678900`)},
		{"a day that is none", swap(`[12345678900,20778]`, `[12345678900,-1]`)},
		{"too long", lineStart + `{"v":1` + strings.Repeat(" ", maxLine) + `}` + lineEnd},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if s, err := decodeState(test.line); err == nil {
				t.Errorf("%+v is taken", s)
			}
		})
	}
}

// TestStateLineHasABound fills every part of a state to its maximum length.
func TestStateLineHasABound(t *testing.T) {
	longest := State{Notice: Answered{Comment: maxID}, Dropped: Dropped{Count: 1, Through: maxID - 100}}
	result := func(i int) Result {
		return Result{
			Stamp: Stamp{Head: fmt.Sprintf("%064x", i), RunID: maxID, Attempt: maxCount}, Conclusion: "cancelled",
			Totals: proposal.Totals{Proposed: maxCount, Allowed: maxCount, Denied: maxCount, Asked: maxCount, Succeeded: maxCount, Failed: maxCount},
		}
	}
	first := result(0)
	longest.Result = &first
	for i := range maxEarlier {
		longest.Earlier = append(longest.Earlier, result(i+1))
	}
	for i := range maxStarts {
		longest.Starts = append(longest.Starts, Start{RunID: maxID - int64(maxStarts-i), Day: maxDay})
	}
	for range MaxPending {
		longest.Pending = append(longest.Pending, Pending{
			Name: strings.Repeat("n", maxName), PlanDigest: digest("a"), Policy: digest("b"), RunID: maxID,
			Artifact: strings.Repeat("a", maxName), ArtifactID: maxID,
		})
	}
	line, err := encodeState(longest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeState(line)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Pending) != MaxPending || got.Started() != longest.Started() {
		t.Errorf("%d plans wait, %d starts are counted", len(got.Pending), got.Started())
	}
	if diff := cmp.Diff(longest.Pending, got.Pending); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	t.Logf("%d units, %d starts listed, %d results", text.Units(line), len(got.Starts), len(got.Earlier))
}

func TestJoin(t *testing.T) {
	a := sheet{State: fullState, notice: "a's notice", results: "a's results"}
	if diff := cmp.Diff(a, join(a, a, head1), cmp.AllowUnexported(sheet{})); diff != "" {
		t.Errorf("with itself: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(a, join(sheet{}, a, head1), cmp.AllowUnexported(sheet{})); diff != "" {
		t.Errorf("with nothing: -want +got:\n%s", diff)
	}
	b := sheet{State: State{
		Result: &Result{Stamp: Stamp{Head: head1, RunID: 1, Attempt: 1}, Conclusion: "success"},
		Starts: []Start{{RunID: 12345678999, Day: 20779}, {RunID: 12345679000, Day: 20779}},
		Notice: Answered{Comment: 2345678902},
	}, notice: "b's notice", results: "b's results"}
	for _, got := range []sheet{join(a, b, head1), join(b, a, head1)} {
		switch {
		case got.results != "b's results" || got.stamp() != b.stamp() || len(got.Pending) != 0:
			t.Errorf("the present head's results are not what stands: %+v", got)
		case got.notice != "b's notice":
			t.Errorf("got notice %q", got.notice)
		case got.Started() != 3+2+2:
			t.Errorf("got %d starts", got.Started())
		case len(got.Earlier) != 2 || got.Earlier[0].Stamp != a.stamp():
			t.Errorf("got earlier %+v", got.Earlier)
		}
		if again := join(got, join(a, b, head1), head1); !cmp.Equal(got, again, cmp.AllowUnexported(sheet{})) {
			t.Errorf("joining again changes it: %+v", again)
		}
	}
}

// some returns a sheet that a job could have written.
func some(r *rand.Rand) sheet {
	heads := []string{head1, head2, head3, strings.Repeat("a", 64)}
	result := func() Result {
		return Result{
			Stamp:      Stamp{Head: heads[r.IntN(len(heads))], RunID: 1 + r.Int64N(9), Attempt: 1 + r.IntN(2)},
			Conclusion: Conclusions[r.IntN(len(Conclusions))], Totals: proposal.Totals{Proposed: r.IntN(9)},
		}
	}
	var s sheet
	for range r.IntN(4) {
		next := result()
		s = join(s, sheet{State: State{Result: &next}, results: fmt.Sprint(next.Stamp)}, head1)
	}
	for range r.IntN(60) {
		s = join(s, sheet{State: State{Starts: []Start{{RunID: 1 + r.Int64N(200), Day: r.IntN(3)}}}}, head1)
	}
	if r.IntN(2) == 0 {
		s.Notice = Answered{Comment: 1 + r.Int64N(5), Cleared: r.IntN(2) == 0}
		s.notice = fmt.Sprint(s.Notice)
	}
	return s
}

// TestJoinOfMany checks what the keepers rely on: a merged sheet can be written and
// read back unchanged, merging again changes nothing, and nothing newer is lost.
func TestJoinOfMany(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range sample.Rounds(t, 800, 100, 50) {
		a, b := some(r), some(r)
		got := join(a, b, head1)
		body, err := got.body()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, readSheet(body), cmp.AllowUnexported(sheet{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("-joined +read:\n%s", diff)
		}
		for _, part := range []sheet{a, b, got} {
			if part.stamp().beats(got.stamp(), head1) || part.Notice.beats(got.Notice) || got.Started() < part.Started() {
				t.Fatalf("%+v is lost in %+v", part.State, got.State)
			}
			again := join(part, got, head1)
			if diff := cmp.Diff(got, again, cmp.AllowUnexported(sheet{}), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("joined again: -once +twice:\n%s", diff)
			}
		}
	}
}

func TestJoinKeepsANoticeTakenAway(t *testing.T) {
	stands := sheet{State: State{Notice: Answered{Comment: 5}}, notice: "x"}
	cleared := sheet{State: State{Notice: Answered{Comment: 5, Cleared: true}}}
	for _, got := range []sheet{join(stands, cleared, head1), join(cleared, stands, head1)} {
		if !got.Notice.Cleared || got.notice != "" {
			t.Errorf("got %+v", got)
		}
	}
}

func FuzzState(f *testing.F) {
	f.Add(fullLine)
	f.Add(`<!-- fumehood:state {"v":1} -->`)
	f.Add(`<!-- fumehood:state {"v":1,"pending":[{"name":"\u2028","plan":"","policy":"","run":1,"artifact":"","artifact_id":0}]} -->`)
	f.Add(`<!-- fumehood:state {"V":1,"result":null} -->`)
	f.Fuzz(func(t *testing.T, line string) {
		s, err := decodeState(line)
		if err != nil {
			return
		}
		again, err := encodeState(s)
		if err != nil || again != line {
			t.Fatalf("%q is spelled %q, %v", line, again, err)
		}
		inner := strings.TrimSuffix(strings.TrimPrefix(line, "<!--"), "-->")
		if strings.Contains(inner, "--") || strings.Contains(inner, ">") || strings.ContainsAny(line, "\n\r") {
			t.Fatalf("%q can end the HTML comment", line)
		}
	})
}

func FuzzSheet(f *testing.F) {
	full, err := sheet{State: fullState, notice: "n", results: "r"}.body()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add(Marker)
	f.Add(Marker + "\r\n" + fullLine + "\r\n" + noticeMark + "\r\n\r\n" + resultsMark + "\r\r\n")
	f.Add(Marker + "\n" + resultsMark + "\n" + resultsMark + "\n" + noticeMark)
	f.Add(Marker + "\n" + lineStart + "x" + lineEnd + "\n<!-- fumehood:results -->\n<<!-- fumehood:")
	f.Add("\xff\n" + Marker + "\n" + Marker)
	f.Fuzz(func(t *testing.T, body string) {
		s := readSheet(body)
		written, err := s.body()
		if err != nil {
			t.Fatal(err)
		}
		again := readSheet(written)
		if diff := cmp.Diff(s, again, cmp.AllowUnexported(sheet{})); diff != "" {
			t.Fatalf("-read +read again:\n%s", diff)
		}
		if second, err := again.body(); err != nil || second != written || !marked(written) {
			t.Fatalf("%q becomes %q, %v", written, second, err)
		}
		if n := strings.Count(written, markStart); n != 4 {
			t.Fatalf("%d lines of ours in %q", n, written)
		}
	})
}
