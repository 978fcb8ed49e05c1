// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Points are the decision points with an ordinary input, without "fumehood.".
func Points() []string { return slices.Sorted(maps.Keys(ordinary)) }

// ParseInput reads POINT=JSON: an ordinary input of the decision point, a
// *points.Trigger, Exec, Egress, Event or Outgoing, with the fields of the JSON object
// changed. An unknown field is refused, with a similar name as a hint.
func ParseInput(text string) (any, error) {
	point, changes, ok := strings.Cut(text, "=")
	if !ok {
		return nil, errors.New("--over needs POINT=JSON, such as exec={\"path\": \"/usr/bin/curl\"}")
	}
	in, err := applyTo(strings.TrimPrefix(point, "fumehood."), []byte(changes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", point, err)
	}
	return in, nil
}
