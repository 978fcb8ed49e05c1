// SPDX-License-Identifier: Apache-2.0

package baseline

import "strings"

// suffix ends the ids of a BaseRun. No proposal's id contains a tilde.
const suffix = "~base"

// RunID returns the id of a command's run on the base.
func RunID(id string) string { return id + suffix }

// CommandID is the reverse of RunID. ok is false if id is not such an id.
func CommandID(id string) (command string, ok bool) { return strings.CutSuffix(id, suffix) }
