// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

const (
	errorsPage   = "../docs/ERRORS.md"
	errorsHeader = "| code | meaning | fix | made in |\n| --- | --- | --- | --- |\n"
	verdicts     = "verdicts" // the section of codes without an area
)

// A codeText is what the page says about a code.
type codeText struct{ meaning, fix string }

// docs/ERRORS.md has every code of the source, no other, and a meaning and a fix for each. -update keeps its
// sentences, adds rows to complete by hand, and writes the last column.
func TestErrorCodes(t *testing.T) {
	codes, doubts := readFailureCodes(t)
	for _, doubt := range doubts {
		t.Errorf("%s: cannot read this code: write a literal, a constant, or a parameter that gets one", doubt)
	}
	page, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	head, areas, texts := readErrorsPage(t, string(page))
	byArea := map[string][]string{}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		area, _, dotted := strings.Cut(code, ".")
		if !dotted && areas[area] == "" {
			area = verdicts
		}
		byArea[area] = append(byArea[area], code)
		if text := texts[code]; text.meaning == "" || text.fix == "" {
			t.Errorf("docs/ERRORS.md: %s, made in %v, has no meaning or no fix: run with -update and write both", code, codes[code])
		}
	}
	var out bytes.Buffer
	out.WriteString(head)
	for _, area := range slices.Sorted(maps.Keys(byArea)) {
		if areas[area] == "" {
			t.Errorf("docs/ERRORS.md: the section %s does not say what it is about", area)
		}
		fmt.Fprintf(&out, "## %s\n\n%s\n\n%s", area, areas[area], errorsHeader)
		for _, code := range byArea[area] {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", code, texts[code].meaning, texts[code].fix, madeIn(codes[code]))
		}
		out.WriteString("\n")
	}
	golden.Compare(t, errorsPage, append(bytes.TrimRight(out.Bytes(), "\n"), '\n'))
}

// readErrorsPage returns what people wrote: the text before the first section, a sentence for each section,
// and what is said of each code.
func readErrorsPage(t *testing.T, page string) (head string, areas map[string]string, texts map[string]codeText) {
	t.Helper()
	areas, texts = map[string]string{}, map[string]codeText{}
	sections := strings.Split(page, "\n## ")
	for _, section := range sections[1:] {
		area, rest, _ := strings.Cut(section, "\n")
		about, rows, _ := strings.Cut(rest, errorsHeader)
		areas[area] = strings.TrimSpace(about)
		for row := range strings.Lines(rows) {
			cells := strings.Split(strings.Trim(row, "|\n"), "|")
			if len(cells) != 4 {
				continue
			}
			code := strings.Trim(cells[0], " `")
			if _, twice := texts[code]; twice {
				t.Errorf("docs/ERRORS.md has %s twice", code)
			}
			texts[code] = codeText{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])}
		}
	}
	return sections[0] + "\n", areas, texts
}

// madeIn lists packages.
func madeIn(dirs []string) string {
	var short []string
	for _, dir := range dirs {
		short = append(short, "`"+strings.TrimPrefix(strings.TrimPrefix(dir, "pkg/"), "internal/")+"`")
	}
	return strings.Join(short, ", ")
}
