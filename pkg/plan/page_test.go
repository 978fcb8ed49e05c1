// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/golden"
)

const plansPage = "../../docs/PLANS.md"

// A schemaNode is the part of a JSON Schema that the page shows.
type schemaNode struct {
	Description string
	Type        any
	Enum        []any
	Const       string
	Minimum     *float64
	Maximum     *float64
	MinLength   int
	MaxLength   int64
	MaxItems    int
	Items       *schemaNode
	MaxProps    int `json:"maxProperties"`
	Properties  map[string]schemaNode
	AnyOf       []schemaNode
	Required    []string
}

// describe says what values n accepts.
func (n schemaNode) describe() string {
	for _, one := range n.AnyOf {
		switch {
		case one.Maximum != nil && *one.Maximum == document.MaxBytes:
			return "bytes, or a size such as `512MiB`, at most 1 TiB"
		case one.Maximum != nil && *one.Maximum == 3600:
			return "seconds, or a duration such as `90s`, at most 1 hour"
		}
	}
	var texts []string
	for _, one := range append([]schemaNode{n}, n.AnyOf...) {
		if text := one.describeOne(); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", or ")
}

func (n schemaNode) describeOne() string {
	switch {
	case n.Const != "":
		return "`" + n.Const + "`"
	case len(n.Enum) > 0:
		var words []string
		for _, e := range n.Enum {
			if word, ok := e.(string); ok && word != "" {
				words = append(words, "`"+word+"`")
			}
		}
		return strings.Join(words, ", ")
	case n.MaxItems > 0:
		return fmt.Sprintf("list of at most %d", n.MaxItems)
	case n.MaxProps > 0:
		return fmt.Sprintf("names and values, at most %d", n.MaxProps)
	case n.Properties != nil:
		return "see below"
	case n.Maximum != nil:
		return fmt.Sprintf("number from %v to %v", *n.Minimum, int64(*n.Maximum))
	case n.MaxLength > 0:
		return fmt.Sprintf("text of at most %d bytes", n.MaxLength)
	case n.Type == "boolean":
		return "`true` or `false`"
	}
	return ""
}

// writeFields writes a row for each field, required ones first.
func writeFields(b *strings.Builder, path string, fields map[string]schemaNode, required []string) {
	names := make([]string, 0, len(fields))
	for name := range fields {
		if !slices.Contains(required, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range append(slices.Clone(required), names...) {
		n, must := fields[name], ""
		if slices.Contains(required, name) {
			must = " (required)"
		}
		fmt.Fprintf(b, "| `%s%s`%s | %s | %s |\n", path, name, must, n.describe(), strings.ReplaceAll(n.Description, "|", `\|`))
		for _, inner := range append([]schemaNode{n}, n.AnyOf...) {
			writeFields(b, path+name+".", inner.Properties, inner.Required)
			if inner.Items != nil {
				writeFields(b, path+name+"[].", inner.Items.Properties, inner.Items.Required)
			}
		}
	}
}

// The page about plans has every field of the schema, with its limits.
func TestFieldsPage(t *testing.T) {
	var root schemaNode
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n| field | value | meaning |\n| --- | --- | --- |\n")
	writeFields(&b, "", root.Properties, root.Required)
	table := regexp.MustCompile(`(?s)(<!-- Generated: [^\n]*-->\n).*(\n<!-- End -->)`)
	fields := strings.ReplaceAll(b.String(), "$", "$$")
	golden.Compare(t, plansPage, table.ReplaceAll(golden.Read(t, plansPage), []byte("${1}"+fields+"${2}")))
	if n := strings.Count(fields, "\n| `proposals[]."); n < 15 {
		t.Errorf("only %d fields of proposals", n)
	}
}

// The plans on the page are valid.
func TestPlansOnPage(t *testing.T) {
	plans := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(golden.Read(t, plansPage), -1)
	for _, found := range plans {
		if _, problems := Decode(found[1], "docs/PLANS.md"); len(problems) > 0 {
			t.Errorf("%v\n%s", problems, found[1])
		}
	}
	if len(plans) == 0 {
		t.Error("there is no plan on the page")
	}
}
