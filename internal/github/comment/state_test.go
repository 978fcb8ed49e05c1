// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var fullState = State{
	Sections: []Section{
		{
			Source: Source{Workflow: "ci.yml", Job: "unit", Name: "linux--x64"}, Mark: "✋", Title: ": 3 waiting for approval, 2 succeeded",
			Result: Result{
				Stamp: Stamp{Head: strings.Repeat("a", 40), RunID: 12345678901, Attempt: 2, Started: 1800000000}, Conclusion: "asked",
				Totals: proposal.Totals{Proposed: 7, Allowed: 6, Denied: 5, Asked: 4, Succeeded: 3, Failed: 2, CouldNotRun: 1, FailedBefore: 8, NotRun: 9},
			},
			Pending: []Pending{{Name: "lint --> x", PlanDigest: digest("c"), Policy: digest("d"), RunID: 12345678901, Artifact: "fumehood", ArtifactID: 42, Nonce: "N"}},
		},
		{
			Source: Source{Workflow: "bot.yml", Job: "report", Requester: "mona", SelfReported: true, Review: true}, Mark: "", Title: ": no findings",
			Result:   Result{Stamp: Stamp{Head: strings.Repeat("a", 40), RunID: 12345678902, Attempt: 1}, Conclusion: "success"},
			Approved: []string{digest("e")},
		},
	},
	Omitted: &OmittedSections{Head: strings.Repeat("a", 40), Mark: "❌"},
	Earlier: []Result{{Stamp: Stamp{Head: strings.Repeat("b", 40), RunID: 12345678900, Attempt: 1}, Conclusion: "denied"}},
	Starts:  []Start{{RunID: 12345678900, Day: 20778}, {RunID: 12345678901, Day: 20778}},
	Dropped: Dropped{Count: 3, Through: 12345678890},
	Notice:  AnsweredComment{Comment: 2345678901, Cleared: true},
	Review:  &Reviewed{Source{Job: "report", Review: true}, Stamp{Head: strings.Repeat("a", 40), RunID: 1, Attempt: 1, Started: 5}, true},
}

// fullLine fixes the format, to the byte.
const fullLine = `<!-- fumehood:state {"v":2,"sections":[` +
	`{"workflow":"ci.yml","job":"unit","name":"linux-\u002dx64","head":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","run":12345678901,"attempt":2,"started":1800000000,` +
	`"said":"asked","totals":[7,6,5,4,3,2,1,8,9],"mark":"✋","title":": 3 waiting for approval, 2 succeeded",` +
	`"pending":[{"name":"lint -\u002d\u003e x","plan":"sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc",` +
	`"policy":"sha256:dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd","run":12345678901,"artifact":"fumehood","artifact_id":42,"nonce":"N"}]},` +
	`{"workflow":"bot.yml","job":"report","requester":"mona","self_reported":true,"review":true,"head":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","run":12345678902,"attempt":1,"started":0,` +
	`"said":"success","totals":[0,0,0,0,0,0,0,0,0],"mark":"","title":": no findings","approved":["sha256:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"]}],` +
	`"omitted":{"head":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","mark":"❌"},` +
	`"earlier":[{"head":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","run":12345678900,"attempt":1,"started":0,"said":"denied","totals":[0,0,0,0,0,0,0,0,0]}],` +
	`"starts":[[12345678900,20778],[12345678901,20778]],"dropped":{"count":3,"through":12345678890},` +
	`"notice":{"comment":2345678901,"cleared":true},` +
	`"review":{"job":"report","review":true,"head":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","run":1,"attempt":1,"started":5,"done":true}} -->`

// equalSections compares sections with their texts.
var equalSections = cmp.AllowUnexported(sheet{}, Section{})

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
	if diff := cmp.Diff(fullState, got, equalSections); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if line, err := encodeState(State{}); line != `<!-- fumehood:state {"v":2} -->` || err != nil {
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
		{"two values", lineStart + `{"v":2}{"v":2}` + lineEnd},
		{"another version", swap(`"v":2`, `"v":1`)},
		{"no version", swap(`"v":2,`, ``)},
		{"unknown field", swap(`"v":2`, `"v":2,"x":1`)},
		{"unknown inner field", swap(`"attempt":2`, `"attempt":2,"x":1`)},
		{"field in capitals", swap(`"pending"`, `"Pending"`)},
		{"field twice", swap(`"v":2`, `"v":2,"v":2`)},
		{"a blank", swap(`"v":2`, `"v": 2`)},
		{"another order", swap(`"count":3,"through":12345678890`, `"through":12345678890,"count":3`)},
		{"another spelling of a number", swap(`"attempt":2`, `"attempt":2.0`)},
		{"another spelling of a text", swap(`"said":"asked"`, `"said":"\u0061sked"`)},
		{"two minuses as they are", swap(`-\u002d`, `--`)},
		{"a bracket as it is", swap(`\u003e`, `>`)},
		{"an empty list", lineStart + `{"v":2,"sections":[]}` + lineEnd},
		{"an empty notice", lineStart + `{"v":2,"notice":{"comment":0,"cleared":false}}` + lineEnd},
		{"cleared nothing", lineStart + `{"v":2,"notice":{"comment":0,"cleared":true}}` + lineEnd},
		{"negative comment", swap(`"comment":2345678901`, `"comment":-1`)},
		{"huge number", swap(`"comment":2345678901`, `"comment":9007199254740993`)},
		{"a number that does not fit", swap(`"comment":2345678901`, `"comment":99999999999999999999`)},
		{"short head", swap(strings.Repeat("a", 40), strings.Repeat("a", 39))},
		{"head in capitals", swap(strings.Repeat("a", 40), strings.Repeat("A", 40))},
		{"unknown word", swap(`"said":"asked"`, `"said":"merged"`)},
		{"negative total", swap(`[7,6`, `[-7,6`)},
		{"huge total", swap(`[7,6`, `[100001,6`)},
		{"eight totals", swap(`[7,6,5,4,3,2,1,8,9]`, `[7,6,5,4,3,2,1,8]`)},
		{"ten totals", swap(`[7,6,5,4,3,2,1,8,9]`, `[7,6,5,4,3,2,1,8,9,0]`)},
		{"no digest", swap("sha256:c", "sha512:c")},
		{"name with a newline", swap("lint ", `lint\n`)},
		{"starts out of order", swap(`[12345678900,20778],[12345678901,20778]`, `[12345678901,20778],[12345678900,20778]`)},
		{"a start twice", swap(`[12345678900,20778]`, `[12345678901,20778]`)},
		{"a start that was dropped", swap(`"through":12345678890`, `"through":12345678900`)},
		{"a day that is none", swap(`[12345678900,20778]`, `[12345678900,-1]`)},
		{"a section twice", swap(`"workflow":"bot.yml","job":"report","requester":"mona","self_reported":true,"review":true`, `"workflow":"ci.yml","job":"unit","name":"linux-\u002dx64"`)},
		{"the best section first", swap(`"mark":"✋"`, `"mark":"✅"`)},
		{"sections of two commits", swap(`"review":true,"head":"aaaa`, `"review":true,"head":"baaa`)},
		{"a section without a job", swap(`"job":"unit",`, `"job":"",`)},
		{"a source with Markdown", swap(`"job":"unit"`, "\"job\":\"`unit\"")},
		{"a long source", swap(`"job":"unit"`, `"job":"`+strings.Repeat("u", maxSource+1)+`"`)},
		{"a false field as it is", swap(`"requester":"mona",`, `"requester":"mona","self_reported":false,`)},
		{"unknown mark", swap(`"mark":"✋"`, `"mark":"x"`)},
		{"a success that failed", swap(`"said":"success","totals":[0,0,0,0,0,0,0,0,0],"mark":""`, `"said":"failure","totals":[0,0,0,0,0,0,0,0,0],"mark":"✅"`)},
		{"a title with Markdown", swap(`: no findings`, `: **no findings**`)},
		{"a mention in a title", swap(`: no findings`, `: @octocat`)},
		{"a long title", swap(`: no findings`, `: `+strings.Repeat("x", 160))},
		{"negative start", swap(`"started":1800000000`, `"started":-1`)},
		{"approved what is no digest", swap(`"approved":["sha256:`, `"approved":["sha512:`)},
		{"omitted of another commit", swap(`"omitted":{"head":"aaaa`, `"omitted":{"head":"baaa`)},
		{"omitted with an unknown mark", swap(`"mark":"❌"`, `"mark":"x"`)},
		{"too long", lineStart + `{"v":2` + strings.Repeat(" ", maxLine) + `}` + lineEnd},
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
	longest := State{Notice: AnsweredComment{Comment: maxID}, Dropped: Dropped{Count: 1, Through: maxID - 100}}
	long := strings.Repeat("n", maxSource)
	result := func(i int) Result {
		return Result{
			Stamp: Stamp{Head: fmt.Sprintf("%064x", i), RunID: maxID, Attempt: maxCount, Started: maxDay * 24 * 60 * 60}, Conclusion: "cancelled",
			Totals: proposal.Totals{Proposed: maxCount, Allowed: maxCount, Denied: maxCount, Asked: maxCount, Succeeded: maxCount, Failed: maxCount, CouldNotRun: maxCount, FailedBefore: maxCount, NotRun: maxCount},
		}
	}
	for pool, n := range maxSections {
		for i := range n {
			x := Section{Source: Source{Workflow: fmt.Sprintf("%060d", i), Job: long, Name: long}, Result: result(0), Mark: "⏱️", Title: ":" + strings.Repeat("t", 159)}
			switch x.SelfReported = pool == int(poolSelfReported); {
			case pool == int(poolRequested):
				x.Requester = long
			}
			longest.Sections = append(longest.Sections, x)
		}
	}
	for i := range maxEarlier {
		longest.Earlier = append(longest.Earlier, result(i+1))
	}
	for i := range maxStarts {
		longest.Starts = append(longest.Starts, Start{RunID: maxID - int64(maxStarts-i), Day: maxDay})
	}
	for range MaxPending {
		longest.Sections[0].Pending = append(longest.Sections[0].Pending, Pending{
			Name: strings.Repeat("n", maxName), PlanDigest: digest("a"), Policy: digest("b"), RunID: maxID,
			Artifact: strings.Repeat("a", maxName), ArtifactID: maxID, Nonce: strings.Repeat("n", maxName),
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
	if len(got.PendingPlans()) != MaxPending || got.CountStarts() != longest.CountStarts() {
		t.Errorf("%d plans wait, %d starts are counted", len(got.PendingPlans()), got.CountStarts())
	}
	if diff := cmp.Diff(longest.Sections, got.Sections, equalSections); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	t.Logf("%d units, %d starts listed, %d results", text.CountUnits(line), len(got.Starts), len(got.Earlier))
}

// section is a section of a source named by one word.
func section(job string, r Result, mark, text string) Section {
	return Section{Source: Source{Workflow: "ci.yml", Job: job}, Result: r, Mark: mark, Title: ": x", text: text}
}

func TestJoin(t *testing.T) {
	a := sheet{State: fullState, notice: "a's notice"}
	if diff := cmp.Diff(a, mergeSheets(a, a, head1), equalSections); diff != "" {
		t.Errorf("with itself: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(a, mergeSheets(sheet{}, a, head1), equalSections); diff != "" {
		t.Errorf("with nothing: -want +got:\n%s", diff)
	}
	b := sheet{State: State{
		Sections: []Section{section("unit", Result{Stamp: Stamp{Head: head1, RunID: 1, Attempt: 1}, Conclusion: "success"}, "✅", "b's results")},
		Starts:   []Start{{RunID: 12345678999, Day: 20779}, {RunID: 12345679000, Day: 20779}},
		Notice:   AnsweredComment{Comment: 2345678902},
	}, notice: "b's notice"}
	for _, got := range []sheet{mergeSheets(a, b, head1), mergeSheets(b, a, head1)} {
		switch {
		case got.texts() != "b's results" || got.Head() != head1 || len(got.PendingPlans()) != 0 || got.Omitted != nil:
			t.Errorf("the present head's results are not what stands: %+v", got)
		case got.notice != "b's notice":
			t.Errorf("got notice %q", got.notice)
		case got.CountStarts() != 3+2+2:
			t.Errorf("got %d starts", got.CountStarts())
		case len(got.Earlier) != 2 || got.Earlier[0].Stamp != a.Sections[0].Stamp || got.Earlier[0].Conclusion != "asked":
			t.Errorf("got earlier %+v", got.Earlier)
		}
		if again := mergeSheets(got, mergeSheets(a, b, head1), head1); !cmp.Equal(got, again, equalSections) {
			t.Errorf("joining again changes it: %+v", again)
		}
	}
}

// some returns a sheet that a job could have written.
func some(r *rand.Rand) sheet {
	heads := []string{head1, head2, head3, strings.Repeat("a", 64)}
	next := func() Section {
		stamp := Stamp{Head: heads[r.IntN(len(heads))], RunID: 1 + r.Int64N(9), Attempt: 1 + r.IntN(2)}
		stamp.Started = (stamp.RunID*7)%9*10 + int64(stamp.Attempt) // the order of ids is not that of time
		i := int(stamp.RunID+int64(stamp.Attempt)) % len(Conclusions)
		marks := []string{"🛑", "❌", "⛔", "🚫", "✋", "➖", "", "✅"}
		x := section(fmt.Sprint("job", r.IntN(14)), Result{Stamp: stamp, Conclusion: Conclusions[i]}, marks[i], fmt.Sprint(stamp))
		switch r.IntN(4) {
		case 0:
			x.Requester = "mona"
		case 1:
			x.SelfReported = true
			x.Mark = strings.TrimPrefix(x.Mark, "✅")
		}
		return x
	}
	var s sheet
	for range r.IntN(40) {
		s = mergeSheets(s, sheet{State: State{Sections: []Section{next()}}}, head1)
	}
	for range r.IntN(60) {
		s = mergeSheets(s, sheet{State: State{Starts: []Start{{RunID: 1 + r.Int64N(200), Day: r.IntN(3)}}}}, head1)
	}
	if r.IntN(2) == 0 {
		s.Notice = AnsweredComment{Comment: 1 + r.Int64N(5), Cleared: r.IntN(2) == 0}
		s.notice = fmt.Sprint(s.Notice)
	}
	return s
}

// TestJoinOfMany checks what the keepers rely on: a merged sheet can be written and
// read back unchanged, merging again changes nothing, and nothing newer or worse is lost.
func TestJoinOfMany(t *testing.T) {
	lanetest.SkipShort(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range sample.Rounds(t, 800, 60, 30) {
		a, b := some(r), some(r)
		got := mergeSheets(a, b, head1)
		body := got.bodyOf(t, head1)
		if diff := cmp.Diff(got, readSheet(body), equalSections, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("-joined +read:\n%s", diff)
		}
		for _, part := range []sheet{a, b, got} {
			if part.newestStamp().replaces(got.newestStamp(), head1) && part.Head() != got.Head() || part.Notice.replaces(got.Notice) || got.CountStarts() < part.CountStarts() {
				t.Fatalf("%+v is lost in %+v", part.State, got.State)
			}
			outdated := false // by a section that was left out
			for _, x := range part.Sections {
				_, there := got.findSection(x.Source)
				if isReplaced(x, a, b) && x.Head == got.Head() && !there {
					outdated = true
				} else if problem := lostIn(got.State, x); problem != "" {
					t.Fatalf("%s: %+v in %+v", problem, x, got.State)
				}
			}
			if outdated {
				continue
			}
			again := mergeSheets(part, got, head1)
			if diff := cmp.Diff(got, again, equalSections, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("joined again: -once +twice:\n%s", diff)
			}
		}
	}
}

// isReplaced reports whether a part has a newer section of x's source, or a worse one of the same
// attempt. That one can be left out.
func isReplaced(x Section, parts ...sheet) bool {
	for _, part := range parts {
		if y, there := part.findSection(x.Source); there && y.Head == x.Head && (y.Compare(x.Stamp) > 0 || y.Compare(x.Stamp) == 0 && y.severityRank() < x.severityRank()) {
			return true
		}
	}
	return false
}

// lostIn says what of x is lost in s, "" for nothing.
func lostIn(s State, x Section) string {
	now, there := s.findSection(x.Source)
	switch {
	case x.Head != s.Head():
		return ""
	case there && (x.Compare(now.Stamp) > 0 || x.Compare(now.Stamp) == 0 && x.severityRank() < now.severityRank()):
		return "a newer or worse section is replaced"
	case there:
		return ""
	case s.Omitted == nil || rankMark(s.Omitted.Mark) > rankMark(x.Mark):
		return "an omitted section is forgotten"
	}
	for _, other := range s.Sections {
		if other.pool() == x.pool() && other.severityRank() > x.severityRank() {
			return "a worse section is omitted for a better one"
		}
	}
	return ""
}

func TestJoinKeepsANoticeTakenAway(t *testing.T) {
	stands := sheet{State: State{Notice: AnsweredComment{Comment: 5}}, notice: "x"}
	cleared := sheet{State: State{Notice: AnsweredComment{Comment: 5, Cleared: true}}}
	for _, got := range []sheet{mergeSheets(stands, cleared, head1), mergeSheets(cleared, stands, head1)} {
		if !got.Notice.Cleared || got.notice != "" {
			t.Errorf("got %+v", got)
		}
	}
}

func FuzzState(f *testing.F) {
	f.Add(fullLine)
	f.Add(`<!-- fumehood:state {"v":2} -->`)
	f.Add(`<!-- fumehood:state {"v":2,"sections":[{"job":"a","name":"\u2028","head":"","run":1,"attempt":1,"started":0,"said":"","totals":[],"mark":"","title":""}]} -->`)
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
	full := sheet{State: fullState, notice: "n"}
	full.Sections = slices.Clone(full.Sections)
	full.Sections[0].text = "r"
	f.Add(full.bodyOf(f, head1))
	f.Add(Marker)
	f.Add(Marker + "\r\n" + fullLine + "\r\n" + noticeMark + "\r\n\r\n" + resultsMark + "\r\r\n")
	f.Add(Marker + "\n" + resultsMark + "\n" + resultsMark + "\n" + noticeMark)
	f.Add(Marker + "\n" + lineStart + "x" + lineEnd + "\n<!-- fumehood:results -->\n<<!-- fumehood:")
	f.Add("\xff\n" + Marker + "\n" + Marker)
	f.Fuzz(func(t *testing.T, body string) {
		s := readSheet(body)
		written, err := layout{limit: MaxBody}.formatBody(s, head1)
		if err != nil {
			t.Fatal(err)
		}
		again := readSheet(written)
		if diff := cmp.Diff(s, again, equalSections); diff != "" {
			t.Fatalf("-read +read again:\n%s", diff)
		}
		if second, err := (layout{limit: MaxBody}).formatBody(again, head1); err != nil || second != written || !hasMarker(written) {
			t.Fatalf("%q becomes %q, %v", written, second, err)
		}
		want := 4 + len(s.Sections) // beside the marker, the state, the notice and the results
		if len(s.Earlier) > 0 {
			want++
		}
		if n := strings.Count(written, markStart); n != want {
			t.Fatalf("%d lines of ours in %q", n, written)
		}
	})
}
