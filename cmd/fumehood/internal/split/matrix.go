// SPDX-License-Identifier: Apache-2.0

package split

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of a matrix, in bytes. GitHub bounds the outputs of a job to 1 MiB and counts them
// as UTF-16. Linux bounds a variable, which has the plan of a part, to 128 KiB.
const (
	maxMatrix = 256 << 10
	maxPart   = 120 << 10
)

type entry struct {
	Name string `json:"name"`
	Plan string `json:"plan"`
}

// MakeMatrix splits the plan in document, which name describes as for Decode, and returns the matrix
// of a GitHub job for it, as JSON on one line: include is a list of objects with name, as
// PartName makes it, and plan, a document. n and took are those of Split. A plan that is one part,
// also because it is not valid, is in it as it is.
//
// The error is a StopError with the code split.too-large if the matrix has more than MaxMatrix
// bytes, or a part more than a step can read from its environment.
func MakeMatrix(document []byte, name string, n int, took func(id string) (time.Duration, bool)) ([]byte, error) {
	p, _ := plan.Decode(document, name) // problems are shown by the run of the only part
	entries := []entry{}
	parts := SplitPlan(p, n, took)
	for i, part := range parts {
		text, err := encodePart(part, document, len(parts))
		if err != nil {
			return nil, err
		}
		if len(text) > maxPart {
			return nil, tooLarge(PartName(i+1, len(parts)), len(text), maxPart)
		}
		entries = append(entries, entry{PartName(i+1, len(parts)), text})
	}
	matrix, err := json.Marshal(map[string]any{"include": entries})
	if err == nil && len(matrix) > maxMatrix {
		err = tooLarge("the matrix", len(matrix), maxMatrix)
	}
	return matrix, err
}

func tooLarge(what string, has, limit int) error {
	return &proposal.StopError{Code: "split.too-large",
		Message: fmt.Sprintf("cannot split the plan: %s has %d bytes, the maximum is %d", what, has, limit),
		Hint:    "move long scripts and standard input from the plan into files of the repository"}
}

// encodePart returns the document of a part. The only part is the document that was read; its last
// newline tells inputs that it is not the path of a file.
func encodePart(part proposal.Plan, document []byte, parts int) (string, error) {
	if parts == 1 {
		return strings.TrimRight(string(document), "\n") + "\n", nil
	}
	text, err := plan.Encode(part)
	return string(text), err
}

// PartName names part k of n, both from 1: part-1-of-3. It can be a part of an artifact's name.
func PartName(k, n int) string { return fmt.Sprintf("part-%d-of-%d", k, n) }

var partName = pattern.New(`^part-([1-9][0-9]{0,2})-of-([1-9][0-9]{0,2})$`)

// ParsePart returns k and n if name is PartName of them, with k at most n and n at most MaxParts.
func ParsePart(name string) (k, n int, ok bool) {
	if !partName.MatchString(name) {
		return 0, 0, false
	}
	fields := strings.Split(name, "-")
	k, _ = strconv.Atoi(fields[1])
	n, _ = strconv.Atoi(fields[3])
	return k, n, k <= n && n <= MaxParts
}
