// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// knowledge is what an organization's layer adds to the facts about tools and files, as data.fumehood. Rules do
// not see it as data, but in the places and options of their input.
type knowledge struct {
	Places struct {
		Secret  []string `json:"secret"`  // see facts.Places.AddSecret
		Control []string `json:"control"` // see facts.Places.AddControl
	} `json:"places"`
	Options string `json:"options"` // see facts.Grammars.AddOptions
}

// readKnowledge returns data without data.fumehood, and what is there.
func readKnowledge(data map[string]any) (map[string]any, knowledge, error) {
	var k knowledge
	own, has := data[module.OwnPackage]
	if !has {
		return data, k, nil
	}
	data = maps.Clone(data)
	delete(data, module.OwnPackage)
	text, err := json.Marshal(own)
	if err != nil {
		return nil, k, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if object, _ := own.(map[string]any); len(object) == 0 {
		err = errors.New("it is empty")
	} else {
		err = d.Decode(&k)
	}
	if err != nil {
		return nil, k, fmt.Errorf("data.fumehood is reserved for packages, and for places and options: %w", err)
	}
	return data, k, nil
}

// readKnowledge returns what the layer adds. Its error is a *proposal.StopError.
func (l Layer) readKnowledge() (knowledge, error) {
	data, err := l.Data()
	if err != nil {
		return knowledge{}, err
	}
	_, k, err := readKnowledge(data)
	if _, has := data[module.OwnPackage]; has && err == nil && l.Role != Allows {
		err = module.Stop(module.CodeData, fmt.Sprintf("policy layer %q must not add places or options", l.Name),
			"remove data.fumehood, or use it as --organization: only an organization's policy may add them", nil)
	}
	return k, err
}

// An AddedFact is one thing that a layer adds to what fumehood knows about tools and files.
type AddedFact struct {
	Set  string // secret, control or options
	Text string // the pattern, or the text of all options
}

// AddedFacts returns what the layer adds. Its error is a *proposal.StopError.
func (l Layer) AddedFacts() (all []AddedFact, err error) {
	k, err := l.readKnowledge()
	for _, text := range k.Places.Secret {
		all = append(all, AddedFact{"secret", text})
	}
	for _, text := range k.Places.Control {
		all = append(all, AddedFact{"control", text})
	}
	if k.Options != "" {
		all = append(all, AddedFact{"options", k.Options})
	}
	return all, err
}

// A knownFacts is what facts are made with: the shipped tables, and what layers add to them.
type knownFacts struct {
	grammars facts.Grammars
	places   facts.Places
	// inspectors are the tools among the added options that read files
	inspectors []string
}

// addLayer adds what the layer knows. Its error is a *proposal.StopError that names the place in the layer.
func (f *knownFacts) addLayer(l Layer) error {
	k, err := l.readKnowledge()
	if err != nil {
		return err
	}
	stop := func(of string, err error) error {
		return module.Stop(module.CodeData, fmt.Sprintf("invalid data.fumehood.%s in policy layer %q", of, l.Name),
			"fix or remove it: docs/policy/extend.md has the form", err)
	}
	if err := f.places.AddSecret(k.Places.Secret); err != nil {
		return stop("places.secret", err)
	}
	if err := f.places.AddControl(k.Places.Control); err != nil {
		return stop("places.control", err)
	}
	if k.Options == "" {
		return nil
	}
	shipped, err := shippedOnce()
	if err != nil {
		return err
	}
	known := func(tool string) bool { return slices.Contains(shipped.programs, tool) }
	grammars, inspectors, err := f.grammars.AddOptions(k.Options, known)
	if err != nil {
		return stop("options", err)
	}
	f.grammars, f.inspectors = grammars, append(f.inspectors, inspectors...)
	return nil
}

// addKnowledge adds what the layers know. Inspectors among it are decided as those of the configuration are.
func (e *Engine) addKnowledge(layers []Layer) error {
	f := knownFacts{grammars: e.grammars}
	for _, l := range layers {
		if l.shipped {
			continue
		}
		if err := f.addLayer(l); err != nil {
			return err
		}
	}
	e.grammars, e.workspace.Added = f.grammars, f.places
	e.tools = append(e.tools, f.inspectors...)
	return nil
}

// checkKnowledge returns what is wrong with what the layer adds.
func (l Layer) checkKnowledge() error {
	grammars, err := facts.ShippedGrammars()
	if err != nil || l.shipped {
		return err
	}
	return (&knownFacts{grammars: grammars}).addLayer(l)
}
