// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/util"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// dataFiles are the names of data files, as opa loads them: the content of
// a/b/data.json is at data.a.b.
var dataFiles = []string{"data.json", "data.yaml", "data.yml"}

// Data is the content of the layer's data files, as one document. A file that is not an
// object, two files that set the same name, and names below fumehood, which are for packages,
// except for places and options of a knowledge, are a *proposal.StopError.
func (l Layer) Data() (map[string]any, error) {
	all := map[string]any{}
	for _, f := range l.Files {
		if !f.HoldsData() {
			continue
		}
		value, err := f.parseData()
		if err == nil {
			err = mergeObjects(all, value)
		}
		if err == nil {
			_, _, err = readKnowledge(all)
		}
		if err != nil {
			return nil, module.Stop(module.CodeData,
				fmt.Sprintf("invalid data file %q in policy layer %q", f.Name, l.Name),
				"write one object; its names must not be in another data file and must not begin with fumehood, except for fumehood.places and fumehood.options", err)
		}
	}
	return all, nil
}

// RuleData is Data without what the layer adds to facts, which its rules do not read.
func (l Layer) RuleData() (map[string]any, error) {
	data, err := l.Data()
	if err == nil {
		data, _, err = readKnowledge(data)
	}
	return data, err
}

// Store is the data that the layer's queries read. Values are kept in the evaluator's own
// form: converting a list of ten thousand at each decision takes longer than the decision.
func (l Layer) Store() (storage.Store, error) {
	data, err := l.RuleData()
	if err != nil {
		return nil, err
	}
	return inmem.NewFromObjectWithOpts(data, inmem.OptReturnASTValuesOnRead(true), inmem.OptRoundTripOnWrite(false)),
		nil
}

// HoldsData reports whether f is data that rules read.
func (f File) HoldsData() bool {
	for _, name := range dataFiles {
		if path.Base(f.Name) == name {
			return true
		}
	}
	return false
}

// parseData reads the file and puts it below the names of its directories.
func (f File) parseData() (map[string]any, error) {
	var value any
	var err error
	if path.Ext(f.Name) == ".json" {
		err = unmarshalJSON(f.Content, &value)
	} else {
		err = unmarshalYAML(f.Content, &value)
	}
	if err != nil {
		return nil, err
	}
	if dir := path.Dir(f.Name); dir != "." {
		names := strings.Split(dir, "/")
		for i := len(names) - 1; i >= 0; i-- {
			value = map[string]any{names[i]: value}
		}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	return object, nil
}

func unmarshalJSON(content []byte, value *any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if err := d.Decode(value); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the first value")
	}
	return nil
}

// unmarshalYAML refuses aliases: a few of them expand to gigabytes.
func unmarshalYAML(content []byte, value *any) error {
	d := yaml.NewDecoder(bytes.NewReader(content))
	var document yaml.Node
	if err := d.Decode(&document); err != nil {
		return err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("there is a second document")
	}
	if n := findAlias(&document); n != nil {
		return fmt.Errorf("line %d: aliases and anchors are not supported: repeat the value", n.Line)
	}
	return util.Unmarshal(content, value)
}

func findAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return n
	}
	for _, c := range n.Content {
		if found := findAlias(c); found != nil {
			return found
		}
	}
	return nil
}

// mergeObjects adds from to into. Only objects are merged.
func mergeObjects(into, from map[string]any) error {
	for name, value := range from {
		old, met := into[name]
		if !met {
			into[name] = value
			continue
		}
		a, ok := old.(map[string]any)
		b, too := value.(map[string]any)
		if !ok || !too {
			return fmt.Errorf("%q is set twice", name)
		}
		if err := mergeObjects(a, b); err != nil {
			return err
		}
	}
	return nil
}
