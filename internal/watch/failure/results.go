// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits on what is kept of the files of test runners, in bytes.
const (
	maxResults    = 120 << 10 // of all files
	maxResultText = 3 << 10   // of each end of what a file says of one test
	maxResultTAP  = 32 << 10  // of one TAP file
)

// mark begins the lines that structure kept results. No other line contains it, because control
// characters are removed. The text between is not escaped, so that secrets in it are found.
const mark = "\x1e"

// IsResults reports whether a path may be that of a file in which a test runner writes its
// results: JUnit's XML, or TAP. The content decides.
func IsResults(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".xml" || ext == ".tap"
}

// Results collects the tests that failed from files that test runners wrote. Everything in the
// files is hostile. The zero value is empty.
type Results struct {
	kept  bytes.Buffer
	sum   hash.Hash // of everything
	bytes int64     // of everything; what is not kept is only counted
	tests int
	cut   bool
}

// Add reads a file. A file that is not of a known form adds nothing.
func (r *Results) Add(name string, data []byte) {
	if strings.EqualFold(path.Ext(name), ".tap") {
		r.addTAP(plainText(data, maxResultTAP+1))
		return
	}
	if head := data[:min(len(data), 8<<10)]; !bytes.Contains(head, []byte("<testsuite")) {
		return
	}
	tests, isWhole := parseJUnit(plainText(data, len(data)), maxReports)
	for _, test := range tests {
		r.addTest(test)
	}
	if len(tests) == maxReports {
		r.NoteOmission("a file names too many tests")
	} else if !isWhole {
		r.NoteOmission("a file cannot be read to its end")
	}
}

// NoteOmission notes that not everything was read.
func (r *Results) NoteOmission(why string) {
	if !r.cut {
		r.cut = true
		r.writeRecord(mark + "incomplete " + why + "\n")
	}
}

func (r *Results) addTest(test junitTest) {
	message, text := keepEnds(test.message), keepEnds(test.text)
	if r.kept.Len() > maxResults/2 {
		text = "" // names matter more
	}
	oneLine := func(s string) string {
		return clipText(strings.NewReplacer("\n", " ", "\t", " ").Replace(withoutMarks(s)))
	}
	record := mark + "test " + oneLine(test.name) + "\n" + mark + "suite " + oneLine(test.suite) + "\n"
	if test.file != "" {
		record += fmt.Sprintf(mark+"file %d %s\n", test.line, oneLine(test.file))
	}
	if len(test.name) > maxText || len(test.suite) > maxText {
		r.NoteOmission("the name of a test is too long")
	}
	r.tests++
	r.writeRecord(record + mark + "message\n" + message + "\n" + mark + "text\n" + text + "\n")
}

func (r *Results) addTAP(text string) {
	if !strings.Contains(text, "not ok") && !strings.Contains(text, "Bail out!") {
		return
	}
	if len(text) > maxResultTAP {
		text = text[:maxResultTAP]
		r.NoteOmission("a file is too long")
	}
	r.tests++
	r.writeRecord(mark + "tap\n" + strings.ToValidUTF8(text, "") + "\n")
}

func (r *Results) writeRecord(record string) {
	if r.sum == nil {
		r.sum = sha256.New()
	}
	_, _ = io.WriteString(r.sum, record)
	r.bytes += int64(len(record))
	if r.kept.Len()+len(record) <= maxResults && r.bytes-int64(len(record)) == int64(r.kept.Len()) {
		r.kept.WriteString(record)
	}
}

// Stream returns what was collected, for Result.TestResults. It is empty if no test failed and nothing
// was omitted.
func (r *Results) Stream() proposal.Stream {
	if r.tests == 0 && !r.cut {
		return proposal.Stream{}
	}
	return proposal.Stream{Bytes: r.bytes, SHA256: hex.EncodeToString(r.sum.Sum(nil)), Head: r.kept.Bytes(),
		Truncated: r.bytes > int64(r.kept.Len())}
}

// HasResults reports whether s names everything that failed in the files of a command's test
// runners: nothing is omitted or withheld.
func HasResults(s proposal.Stream) bool {
	return s.Bytes > 0 && !s.Truncated && s.Withheld == "" &&
		!bytes.Contains(slices.Concat(s.Head, s.Tail), []byte(mark+"incomplete "))
}

// keepEnds returns the beginning and the end of a text.
func keepEnds(s string) string {
	s = strings.Trim(withoutMarks(s), "\n")
	if len(s) > 2*maxResultText {
		s = s[:maxResultText] + "\n" + s[len(s)-maxResultText:]
	}
	return strings.ToValidUTF8(s, "")
}

// withoutMarks removes control characters that a document had as references, such as &#30;.
func withoutMarks(s string) string { return plainText([]byte(s), len(s)) }

// plainText returns a text of at most maximum bytes as splitLines does, with lines of any length.
func plainText(data []byte, maximum int) string {
	var b strings.Builder
	text := string(data[:min(len(data), maximum)])
	for text != "" {
		line, rest, found := strings.Cut(text, "\n")
		b.WriteString(plainLine(strings.TrimSuffix(line, "\r")))
		if found {
			b.WriteByte('\n')
		}
		text = rest
	}
	return b.String()
}

// readResults reads what Results collected.
func readResults(kept proposal.Stream, o Options) []report {
	data := kept.Head
	if !kept.Truncated {
		data = slices.Concat(kept.Head, kept.Tail)
	}
	if len(data) > maxBytes || len(data) == 0 {
		return nil
	}
	s := &scan{Options: o.normalizeCwd()}
	var test junitTest
	add := func() {
		if test.name != "" {
			s.addJUnit(test)
		}
		test = junitTest{}
	}
	for i, record := range strings.Split(string(data), mark) {
		if i == 0 {
			continue // nothing, or a text that lost its beginning
		}
		head, text, _ := strings.Cut(strings.TrimSuffix(record, "\n"), "\n")
		kind, value, _ := strings.Cut(plainLine(head), " ")
		switch kind {
		case "test":
			add()
			test.name = value
		case "suite":
			test.suite = value
		case "file":
			line, name, _ := strings.Cut(value, " ")
			test.file = name
			test.line, _ = strconv.Atoi(line)
		case "message":
			test.message = text
		case "text":
			test.text = text
		case "tap":
			lines := splitLines([]byte(text))
			part := &scan{Options: s.Options, lines: lines, work: 100*len(lines) + 1000}
			readTAP(part)
			s.found = append(s.found, part.found...)
		}
	}
	add()
	for i := range s.found {
		s.found[i].isResult = true
	}
	return withoutParents(s.found)
}

// withoutParents returns reports without tests of which only the name is known, and that failed
// because a test below them did.
func withoutParents(list []report) []report {
	parents := map[string]bool{}
	for _, r := range list {
		for i, c := range r.Test {
			if c == '/' {
				parents[r.Suite+"\x00"+r.Test[:i]] = true
			}
		}
	}
	return slices.DeleteFunc(list,
		func(r report) bool { return r.Message == Unsaid && r.File == "" && parents[r.Suite+"\x00"+r.Test] })
}

// preferResults removes each test that the output names and a file of its runner, too, at no other
// place. The file's report gets what only the output has.
func preferResults(all []report) []report {
	byName := map[string][]int{}
	for i, r := range all {
		if r.isResult && r.rank == rankTest {
			for _, name := range namesOf(r.Test) {
				byName[name] = append(byName[name], i)
			}
		}
	}
	if len(byName) == 0 {
		return all
	}
	drop := map[int]bool{}
	used := map[int]bool{}
	for i, printed := range all {
		if printed.isResult || printed.rank != rankTest || printed.Test == "" {
			continue
		}
		for _, name := range namesOf(printed.Test) {
			at := slices.IndexFunc(byName[name], func(k int) bool {
				return !used[k] && (all[k].File == "" || printed.File == "" || all[k].File == printed.File)
			})
			if at >= 0 {
				k := byName[name][at]
				drop[i], used[k] = true, true
				all[k].Diagnostic = mergeReports(all[k].Diagnostic, printed.Diagnostic)
				break
			}
		}
	}
	list := all[:0:0]
	for i, r := range all {
		if !drop[i] {
			list = append(list, r)
		}
	}
	return list
}

// namesOf returns the forms of a test's name in which runners and files agree.
func namesOf(test string) []string {
	whole := strings.NewReplacer(" > ", " ", " › ", " ").Replace(test)
	last := lastName(test)
	if i := strings.LastIndex(last, "::"); i >= 0 {
		last = last[i+2:]
	}
	if last != whole {
		return []string{whole, last}
	}
	return []string{whole}
}

// mergeReports returns d with what only other has of the same failure.
func mergeReports(d, other proposal.Diagnostic) proposal.Diagnostic {
	if d.Message == Unsaid {
		d.Message = other.Message
	}
	if d.Expected == "" && d.Actual == "" {
		d.Expected, d.Actual = other.Expected, other.Actual
	}
	if d.File == "" || d.Line == 0 && d.File == other.File {
		d.File, d.Line, d.Column, d.Frames = other.File, other.Line, other.Column, other.Frames
	}
	d.Suite = cmp.Or(d.Suite, other.Suite)
	return d
}
