// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/post"
	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// diff is what review.Local reads of the pull request.
func (w *town) diff() *review.Diff {
	w.t.Helper()
	local, err := checkout.OpenLocal(w.t.Context(), w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer local.Close()
	data, err := local.Diff(w.t.Context(), w.git("merge-base", w.base, w.head), w.head)
	if err != nil {
		w.t.Fatal(err)
	}
	diff, err := review.ParseDiff(data)
	if err != nil {
		w.t.Fatal(err)
	}
	return diff
}

// verified are results at the positions that the diff has for findings, and how many have none.
func (w *town) verified(diff *review.Diff, findings []proposal.ReviewFinding) (d review.Document, unplaced int) {
	d = w.document(findings...)
	for i := range d.Results {
		r := &d.Results[i]
		if r.Position, r.Unplaced = diff.Position(r.Finding); r.Position == nil {
			unplaced++
		}
	}
	return d, unplaced
}

// lineAt is a finding about a line or a few lines of either side.
func lineAt(file string, line, start int, side string) proposal.ReviewFinding {
	f := finding(line)
	f.File, f.Side, f.Start = file, side, start
	f.Claim = fmt.Sprint(file, line, start, side)
	return f
}

// everyLine has findings about each line of files, on both sides, and about ranges.
func everyLine(files []string, lines int) (list []proposal.ReviewFinding) {
	for _, file := range files {
		for line := 1; line <= lines; line++ {
			for _, side := range []string{review.SideHead, review.SideBase} {
				list = append(list, lineAt(file, line, 0, side), lineAt(file, line, max(1, line-3), side))
			}
		}
	}
	return list
}

// odd is a pull request with whatever makes diffs unusual.
func odd() (before, after map[string]string) {
	text := numbered(60)
	before = map[string]string{
		"renamed.go": text, "moved.go": text + "m\n", "same.go": text + "s\n", "gone.go": "a\nb\n", "crlf.txt": strings.ReplaceAll(text, "\n", "\r\n"),
		"noeol": text + "last", "eol": text, "empty": "", "bin": "\x00\x01\x02", "spät ü.go": text, "tab\tname": text, "quote\"name": text, "cr\rin": "a\rb\nc\n", "-dash": text,
		"diff --git a/x b/x": text, "@@ -1 +1 @@": text, "many": text, "utf16": "\xff\xfea\x00\n\x00", "deep/er/f": text, "mode": text, "type": text,
	}
	after = maps.Clone(before)
	change := func(s string) string {
		return strings.Replace(strings.Replace(s, "\n10", "\nten\nmore", 1), "\n50", "", 1)
	}
	for _, name := range []string{"crlf.txt", "spät ü.go", "tab\tname", "quote\"name", "-dash", "diff --git a/x b/x", "@@ -1 +1 @@", "deep/er/f"} {
		after[name] = change(before[name])
	}
	for from, to := range map[string]string{"renamed.go": "new/name.go", "same.go": "same2.go", "moved.go": "deep/moved.go"} {
		after[to] = before[from]
		delete(after, from)
	}
	after["new/name.go"], after["deep/moved.go"] = change(after["new/name.go"]), change(after["deep/moved.go"])
	delete(after, "gone.go")
	after["noeol"], after["eol"], after["empty"], after["bin"] = text, text+"more", "now\n", "\x00\x02"
	after["cr\rin"], after["utf16"], after["many"] = "a\rb\nC\n", "\xff\xfeb\x00\n\x00", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n"+text
	return before, after
}

// Every position of the mapper is one that git's own diff has, read by the fake in its own way:
// GitHub accepts a review with all of them. What has no position says why.
func TestPositions(t *testing.T) {
	lanetest.SkipShort(t)
	before, after := odd()
	w := newTown(t, before, after)
	link := maps.Clone(after)
	link["type"] = "mode"
	w.head = w.commit("changes", w.head, link, map[string]string{"mode": "100755", "type": "120000"})
	w.MoveHead(number, w.head)

	names := slices.Sorted(maps.Keys(before))
	for name := range after {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	// Of a file that became a link, the fake has no patch: as on GitHub, it is two diffs in one.
	names = slices.DeleteFunc(names, func(name string) bool { return name == "type" })
	findings := everyLine(append(names, "missing"), 66)
	d, unplaced := w.verified(w.diff(), findings)
	w.acceptAll(d, 500)
	if unplaced < 3000 {
		t.Errorf("%d findings have no position", unplaced)
	}
}

// acceptAll posts the document in parts, of which GitHub must accept all.
func (w *town) acceptAll(d review.Document, atLeast int) {
	w.t.Helper()
	placed := d.PlacedFindings()
	for part := range slices.Chunk(placed, post.MaxComments) {
		d.Results = part
		if o := w.post(d); o.Failure != nil || len(o.Notes) > 0 || o.Created != len(part) {
			w.t.Fatalf("%d of %d comments: %+v, %q", o.Created, len(part), o.Failure, o.Notes)
		}
		w.RemoveReviews(number)
	}
	if len(placed) < atLeast {
		w.t.Errorf("only %d positions", len(placed))
	}
}

// Random changes of random files.
func TestRandomPositions(t *testing.T) {
	lanetest.SkipShort(t)
	for seed := range sample.Rounds(t, 12, 3, 1) {
		r := rand.New(rand.NewPCG(1, uint64(seed)))
		before, after := map[string]string{}, map[string]string{}
		var names []string
		for i := range 6 {
			name := fmt.Sprintf("d%d/f%d", i%2, i)
			names = append(names, name)
			before[name] = randomText(r, nil)
			to := name
			if r.IntN(4) == 0 {
				to = "moved" + name
				names = append(names, to)
			}
			after[to] = randomText(r, strings.SplitAfter(before[name], "\n"))
		}
		w := newTown(t, before, after)
		d, _ := w.verified(w.diff(), everyLine(names, 45))
		w.acceptAll(d, 1)
	}
}

// randomText is lines, or others with some removed, added or changed.
func randomText(r *rand.Rand, from []string) string {
	if from == nil {
		for i := range r.IntN(40) {
			from = append(from, fmt.Sprintf("line %d %d\n", i, r.IntN(3)))
		}
	}
	var b strings.Builder
	for _, line := range from {
		switch r.IntN(12) {
		case 0:
		case 1:
			b.WriteString("new\n" + line)
		case 2:
			b.WriteString(strings.TrimSuffix(line, "\n") + "!\r\n")
		default:
			b.WriteString(line)
		}
	}
	if r.IntN(3) == 0 {
		return strings.TrimSuffix(b.String(), "\n")
	}
	return b.String()
}

// Of a pull request with 3,100 files, and one whose diff GitHub does not show, the positions that
// GitHub knows nothing about are left to the summary.
func TestHugePositions(t *testing.T) {
	lanetest.SkipShort(t)
	before, after := map[string]string{"a-big": "1\n"}, map[string]string{"a-big": strings.Repeat("long line\n", 60_000)}
	var findings []proposal.ReviewFinding
	for i := range 3100 {
		name := fmt.Sprintf("f%04d", i)
		before[name], after[name] = "1\n", "2\n"
		if i%310 == 309 {
			findings = append(findings, lineAt(name, 1, 0, ""))
		}
	}
	w := newTown(t, before, after)
	d, unplaced := w.verified(w.diff(), append(findings, lineAt("a-big", 7, 0, "")))
	o := w.post(d)
	if unplaced != 0 || o.Created != 9 || o.Failure != nil || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "2 findings") {
		t.Errorf("%d unplaced, %+v", unplaced, o)
	}
}
