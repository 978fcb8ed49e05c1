// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"maps"
	"slices"
)

// Points are the decision points that Lay knows, without "fumehood.".
func Points() []string { return slices.Sorted(maps.Keys(ordinary)) }

// Lay reads a JSON object of those fields that differ over an ordinary input of point: a
// *proposal.Trigger, Exec, Egress, Event or Outgoing. A field that is not there is
// refused, with the one that may have been meant.
func Lay(point string, changes []byte) (any, error) { return lay(point, changes) }
