// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const folder = "../../../testdata/report"

func TestGolden(t *testing.T) {
	lanetest.SkipShort(t)
	for name, r := range cases() {
		t.Run(name, func(t *testing.T) {
			data, err := JSON(r)
			if err != nil {
				t.Fatal(err)
			}
			got := Markdown(r)
			if len(data) <= 128<<10 { // the other documents would have megabytes
				golden.Compare(t, filepath.Join(folder, name+".json"), data)
				// The comment of the decoded document is the same.
				if diff := cmp.Diff(Markdown(decode(t, data)), got); diff != "" {
					t.Errorf("comment of the JSON differs:\n%s", diff)
				}
			}
			golden.Compare(t, filepath.Join(folder, name+".md"), []byte(got))
			golden.Compare(t, filepath.Join(folder, name+".txt"), []byte(Text(r)))
			checkComment(t, r, got)
		})
	}
}

func decode(t *testing.T, data []byte) proposal.Report {
	t.Helper()
	var r proposal.Report
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAttacksEverywhere(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	for _, a := range sample.EveryNth(t, append([]string{strings.Join(attacks, "\n"), strings.Join(attacks, " ")}, attacks...), 3, 5) {
		r := everywhere(a)
		checkComment(t, r, Markdown(r))
		checkPlain(t, "Text", Text(r))
		data, err := JSON(r)
		if err != nil {
			t.Fatal(err)
		}
		checkPlain(t, "JSON", string(data))
		if diff := cmp.Diff(r, decode(t, data)); diff != "" && utf8.ValidString(a) {
			t.Errorf("JSON of %q decodes to something else:\n%s", a, diff)
		}
	}
}

// TestEveryLimit renders with limits that force each level of detail.
func TestEveryLimit(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	for name, r := range cases() {
		for _, limit := range sample.EveryNth(t, []int{4000, 6000, 9000, 13000, 20000, 30000, 45000, MaxComment}, 3, 7) {
			got := Page{Parts: []Part{{Report: r}}, Limit: limit}.Markdown()
			if n := text.CountUnits(got); n > limit {
				t.Errorf("%s: %d units at limit %d", name, n, limit)
			}
			checkTree(t, got)
		}
	}
}

func TestCommentIsFilled(t *testing.T) {
	lanetest.SkipShort(t)
	for _, r := range []proposal.Report{huge(40, 6<<10), huge(3, 1<<20)} {
		if n := text.CountUnits(Markdown(r)); n < MaxComment*9/10 {
			t.Errorf("a report with megabytes of output fills only %d of %d units", n, MaxComment)
		}
	}
}

func TestFairShare(t *testing.T) {
	got := Markdown(huge(40, 6<<10))
	if n := strings.Count(got, "```text\ndone\n```"); n != 10 {
		t.Errorf("short outputs shown whole: %d, want 10", n)
	}
	gaps := regexp.MustCompile(`⟨… [0-9,]+ bytes left out here …⟩`).FindAllString(got, -1)
	if len(gaps) != 30 {
		t.Errorf("long outputs cut with a note: %d, want 30", len(gaps))
	}
	if !strings.Contains(got, "full output in <code>step-00.stdout</code>") {
		t.Error("the comment does not say where the whole output is")
	}
}

func TestHeading(t *testing.T) {
	all := cases()
	for name, want := range map[string]string{
		"all_ok":  "## ✅ fumehood: 3 succeeded",
		"mixed":   "## ❌ fumehood: 2 failed, 2 denied, 1 waiting for approval, 1 not run, 2 succeeded",
		"stopped": "## 🛑 fumehood stopped: 1 failed, 1 not run, 1 succeeded",
		"empty":   "## ➖ fumehood: no commands were proposed",
	} {
		if lines := strings.SplitN(Markdown(all[name]), "\n", 4); lines[0] != Marker || lines[2] != want {
			t.Errorf("%s begins %q, %q; want %q", name, lines[0], lines[2], want)
		}
	}
}

func TestProse(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a person must approve, always.", "a person must approve, always."},
		{"backticks", "`find -exec` runs `sh`", "<code>find -exec</code> runs <code>sh</code>"},
		{"quotes", `the word "LGTM, approved \" yes" is odd`, `the word <code>&#34;LGTM, approved \&#34; yes&#34;</code> is odd`},
		{"mention and reference", "fixes #1 for @you", "fixes <code>#1</code> for <code>@you</code>"},
		{"commit", "see deadbeef and 1234567", "see <code>deadbeef</code> and <code>1234567</code>"},
		{"unclosed", "a ` b", "a <code>`</code> b"},
		{"link", "see www.evil.example", "see <code>www.evil.example</code>"},
	} {
		if diff := cmp.Diff(tt.want, formatProse(tt.in, 1000)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestSize(t *testing.T) {
	long := strings.Repeat("<&x`\"@ ", 5000)
	for max := 20; max < 300; max += 7 {
		if n := text.CountUnits(formatProse(long, max)); n > max+2 {
			t.Errorf("prose of %d units for %d", n, max)
		}
		if n := text.CountUnits(formatCode(long, max)); n > max+codeTags+1 {
			t.Errorf("code of %d units for %d", n, max)
		}
	}
}

func TestJSONRefusesOtherSchema(t *testing.T) {
	if _, err := JSON(proposal.Report{Schema: "fumehood.report/v2"}); err == nil {
		t.Error("another schema was accepted")
	}
}

func BenchmarkMarkdown(b *testing.B) {
	r := huge(50, 512<<10) // 50 commands, 1 MiB kept of each
	b.ReportAllocs()
	for b.Loop() {
		Markdown(r)
	}
}

// A stream that is complete and valid UTF-8 is in the document as text, too; decoding
// ignores what is there.
func TestJSONText(t *testing.T) {
	cut := ran("cut", "yes", proposal.Exited, 0, "y\n", "")
	cut.Result.Stdout.Bytes, cut.Result.Stdout.Truncated = 1<<20, true
	binary := ran("binary", "cat x", proposal.Exited, 0, "\xff", "über\n")
	r := finish(proposal.Report{Records: []proposal.Record{cut, binary}})
	data, err := JSON(r)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(data, []byte(`"text":`)); n != 1 || !bytes.Contains(data, []byte(`"text": "über\n"`)) {
		t.Errorf("%d texts in %s", n, data)
	}
	forged := bytes.Replace(data, []byte(`"text": "über\n"`), []byte(`"text": "other"`), 1)
	read, err := Read(forged, len(forged))
	if err != nil || read.Records[1].Result.Stderr.Text != "" {
		t.Errorf("%v, text %q", err, read.Records[1].Result.Stderr.Text)
	}
	if r.Records[1].Result.Stderr.Text != "" {
		t.Error("JSON changed its argument")
	}
}
