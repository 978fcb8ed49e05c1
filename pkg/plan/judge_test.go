// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

var (
	problemLine = regexp.MustCompile(`^[^:]+:([0-9]+):([0-9]+): (?:((?:schema|proposer|proposals)(?:[][.\w-]|"[^"]*")*): )?(.*)$`)
	pathStep    = regexp.MustCompile(`^(?:\.?([\w-]+)|\[([0-9]+)\]|\[("[^"]*")\])`)
	// What a message repeats of the plan, and the line of the other of two alike.
	repeated = regexp.MustCompile(`(?:invalid value|got the (?:text|number|boolean)|unknown (?:field|registry)|disagree about(?: the name)?|no proposal has the id) ("(?:[^"\\]|\\.)*"|[^ :]+)`)
	other    = regexp.MustCompile(`(?:first|of proposals\[[0-9]+\]) in line ([0-9]+)`)
)

// TestProblemsAreWhereTheySay is a second opinion on testdata/bad: nodes of a YAML parser, which
// also reads JSON, are where the problems say that the fields of their paths are, and what a
// problem repeats of the plan is there.
func TestProblemsAreWhereTheySay(t *testing.T) {
	placed, quoted := 0, 0
	for _, file := range badPlans(t) {
		data := golden.Read(t, file)
		lines := strings.Split(string(data), "\n")
		var document yaml.Node
		parsed := yaml.Unmarshal(data, &document) == nil && len(document.Content) == 1
		for problem := range strings.Lines(string(golden.Read(t, file+".out"))) {
			match := problemLine.FindStringSubmatch(strings.TrimSpace(problem))
			if match == nil {
				continue // of the whole plan
			}
			line, _ := strconv.Atoi(match[1])
			column, _ := strconv.Atoi(match[2])
			if line < 1 || line > len(lines) || column < 1 || column > len([]rune(lines[line-1]))+1 {
				t.Errorf("no such place: %s", problem)
				continue
			}
			if parsed && match[3] != "" && match[4] != "a name must be a text" {
				placed++
				if !isAt(document.Content[0], match[3], line, column) {
					t.Errorf("%s is not there: %s", match[3], problem)
				}
			}
			if said := repeated.FindStringSubmatch(match[4]); said != nil {
				quoted++
				text, err := strconv.Unquote(said[1])
				if err != nil {
					text = said[1]
				}
				rest := strings.TrimPrefix(strings.TrimLeft(string([]rune(lines[line-1])[column-1:]), `"'`), "registry:")
				if !strings.HasPrefix(rest, text) && !strings.Contains(text, "\uFFFD") {
					t.Errorf("%q is not there: %s", text, problem)
				}
			}
			if second := other.FindStringSubmatch(match[4]); second != nil {
				n, _ := strconv.Atoi(second[1])
				name := match[3][strings.LastIndexByte(match[3], '.')+1:]
				if n < 1 || n > len(lines) || !strings.Contains(lines[n-1], name) {
					t.Errorf("line %d has no %s: %s", n, name, problem)
				}
			}
		}
	}
	t.Logf("%d places, %d quotations", placed, quoted)
	if placed < 150 || quoted < 100 {
		t.Errorf("%d places and %d quotations in %s", placed, quoted, filepath.Dir(badPlans(t)[0]))
	}
}

// isAt reports whether the node of a path, or the name of its field, is at a place.
func isAt(node *yaml.Node, path string, line, column int) bool {
	if path == "" {
		return node.Line == line && node.Column == column
	}
	step := pathStep.FindStringSubmatch(path)
	if step == nil {
		return false
	}
	rest := path[len(step[0]):]
	if step[2] != "" {
		i, _ := strconv.Atoi(step[2])
		return node.Kind == yaml.SequenceNode && i < len(node.Content) && isAt(node.Content[i], rest, line, column)
	}
	name := step[1]
	if step[3] != "" {
		name, _ = strconv.Unquote(step[3])
	}
	if node.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(node.Content); i += 2 { // a field may be given twice
		key := node.Content[i]
		if key.Value == name && (rest == "" && isAt(key, "", line, column) || isAt(node.Content[i+1], rest, line, column)) {
			return true
		}
	}
	return false
}
