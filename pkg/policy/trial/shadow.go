// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/module"
)

// A seen counts the inputs in which a rule held.
type seen struct{ held, denied int }

// note records one decision of all layers, and the rules that held in it.
func (t *trial) note(a answer) {
	t.inputs++
	for at := range a.held {
		s := t.seen[at]
		s.held++
		if a.effect == "deny" {
			s.denied++
		}
		t.seen[at] = s
	}
}

// decided runs decide, and notes the rules that held if there is an answer.
func (t *trial) decided(decide func() (answer, error)) (answer, error) {
	held := map[module.Place]bool{}
	t.besides(func(at module.Place) { held[at] = true })
	a, err := decide()
	t.besides(nil)
	if a.held = held; err == nil {
		t.note(a)
	}
	return a, err
}

// shadows are the allows of l that held only where the whole decision denied. It proves
// nothing about other inputs.
func (t *trial) shadows(l policy.Layer, rules []RuleReport) []Shadow {
	var all []Shadow
	for _, r := range rules {
		s := t.seen[module.Place{Layer: l.Name, File: r.File, Row: r.Line}]
		if r.Set == "allow" && s.held > 0 && s.denied == s.held {
			all = append(all, Shadow{r, fmt.Sprintf("not seen to have an effect in %d inputs: it held in %d, all of them denied", t.inputs, s.held)})
		}
	}
	return all
}
