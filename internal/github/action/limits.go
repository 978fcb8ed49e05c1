// SPDX-License-Identifier: Apache-2.0

package action

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const limitsHint = "memory=4GiB, pids=512, wall=5m"

// readLimits reads "memory=4GiB, pids=512", with commas or newlines between.
func (r *inputReader) readLimits(input string) proposal.Limits {
	var l proposal.Limits
	value := r.action.GetInput(inputVariableName(input))
	if len(value) > maxInput {
		r.refuseInput(input, limitsHint, "has more than %d bytes", maxInput)
		return l
	}
	var seen []string
	for _, part := range strings.FieldsFunc(value, func(c rune) bool { return c == ',' || c == '\n' || c == '\r' }) {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, err := setLimit(&l, part)
		if err == nil && slices.Contains(seen, name) {
			err = errors.New("is given twice")
		}
		if err != nil {
			r.refuseInput(input, limitsHint, "%s %v", quoteUntrusted(strings.TrimSpace(part)), err)
			return proposal.Limits{}
		}
		seen = append(seen, name)
	}
	return l
}

// setLimit sets the field named in "name=value" or "name: value".
func setLimit(l *proposal.Limits, part string) (name string, err error) {
	name, value, found := strings.Cut(part, "=")
	if !found {
		name, value, _ = strings.Cut(part, ":")
	}
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch name {
	case "wall":
		err = l.Wall.UnmarshalText([]byte(value))
		if err == nil && l.Wall <= 0 {
			err = errors.New("is not a positive duration")
		}
	case "cpus":
		l.CPUs, err = parseProcessors(value)
	case "memory":
		l.Memory, err = text.ParseBytes(value)
	case "pids":
		l.Pids, err = parseWholeNumber(value)
	case "disk":
		l.Disk, err = text.ParseBytes(value)
	case "files":
		l.Files, err = parseWholeNumber(value)
	case "output":
		l.Output, err = text.ParseBytes(value)
	default:
		err = errors.New("is not wall, cpus, memory, pids, disk, files or output")
	}
	return name, err
}

var cpusText = pattern.New(`^[0-9]{1,3}(\.[0-9]{1,3})?$`)

func parseWholeNumber(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || !digits.MatchString(value) || n < 1 || n > 1<<22 {
		return 0, fmt.Errorf("is not a number from 1 to %d", 1<<22)
	}
	return n, nil
}

func parseProcessors(value string) (float64, error) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !cpusText.MatchString(value) || n <= 0 || n > 256 {
		return 0, errors.New("is not a number of CPUs up to 256")
	}
	return n, nil
}
