// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Points are the decision points that Lay knows, without "fumehood.".
func Points() []string { return slices.Sorted(maps.Keys(ordinary)) }

// ParseInput reads POINT=JSON: an ordinary input of the decision point, a
// *proposal.Trigger, Exec, Egress, Event or Outgoing, in which the fields of the JSON
// object differ. A field that there is not is refused, with the one that may be meant.
func ParseInput(text string) (any, error) {
	point, changes, ok := strings.Cut(text, "=")
	if !ok {
		return nil, errors.New("--over wants POINT=JSON, as exec={\"path\": \"/usr/bin/curl\"}")
	}
	in, err := lay(strings.TrimPrefix(point, "fumehood."), []byte(changes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", point, err)
	}
	return in, nil
}
