// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	ginkgoHead = pattern.New(`^• \[(?:FAILED|PANICKED|TIMEDOUT|INTERRUPTED)\] \[[\d.]{1,12} seconds\]$`)
	ginkgoNode = pattern.New(`\s?\[(?:It|BeforeEach|AfterEach|JustBeforeEach|BeforeAll|AfterAll|BeforeSuite|AfterSuite|SynchronizedBeforeSuite|DescribeTable|Entry)\]\s?`)
	ginkgoAt   = pattern.New(`^\s{2}In \[\w{1,40}\] at: (\S{1,400}):(\d{1,7})`)
	ginkgoSays = pattern.New(`^\s{2}\[(?:FAILED|PANICKED|TIMEDOUT|INTERRUPTED)\] (.{1,900})$`)
)

// readGinkgo reads the specs of Ginkgo that failed. What go test says of the test that runs them is
// dropped: it names none.
func readGinkgo(s *scan) {
	before, wrappers := len(s.found), map[string]bool{}
	for i := 0; i < len(s.lines); i++ {
		if strings.HasPrefix(s.lines[i], "FAIL! -- ") {
			for _, line := range s.lines[i:min(i+4, len(s.lines))] {
				if m := matchContaining(goVerdict, "--- FAIL", line); m != nil {
					wrappers[m[3]] = true
				}
			}
		}
		if matchContaining(ginkgoHead, "• [", s.lines[i]) == nil || i+2 >= len(s.lines) {
			continue
		}
		end := s.findLine(i+3, maxBlock, func(t, line string) bool { return isRule(t) && indentWidth(line) == 0 })
		f := proposal.Diagnostic{Tool: "ginkgo",
			Test: strings.TrimSpace(ginkgoNode.ReplaceAllString(s.lines[i+1], " "))}
		if p, ok := parsePlace(strings.TrimSpace(s.lines[i+2])); ok {
			s.setPlace(&f, p)
		}
		var said []string
		isOpen := false
		for _, line := range s.lines[i+3 : end] {
			if m := matchContaining(ginkgoSays, "] ", line); m != nil && len(said) == 0 {
				said, isOpen = append(said, m[1]), true
			} else if m := matchContaining(ginkgoAt, " at: ", line); m != nil {
				s.setPlace(&f, place{name: m[1], row: parseNumber(m[2])})
				isOpen = said != nil && said[0] == "Test Panicked"
			} else if t := strings.TrimSpace(line); t == "Full Stack Trace" {
				break
			} else if isOpen && t != "" && len(said) < 8 {
				said = append(said, t)
			}
		}
		f.Message = strings.Join(said, " ")
		s.addReport(rankTest, f)
		i = end
	}
	if len(s.found) > before && !s.Every {
		s.found = slices.DeleteFunc(s.found, func(r report) bool {
			return r.Tool == "go test" && r.Message == Unsaid && r.File == "" && wrappers[r.Test]
		})
	}
}
