// SPDX-License-Identifier: Apache-2.0

// Package machine makes a sandbox present its limits as its hardware: the processors
// and memory that the bundle's resources allow, not the host's. So runtimes that size
// themselves by the hardware (JVM, Node, make -j$(nproc)) stay within the limits.
//
// runsc does this if it manages the cgroups. fumehood manages them itself, so this
// package derives the flags for runsc's boot process from the bundle instead of the
// cgroups.
package machine

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// minCPUs is runsc's own minimum: programs that see one processor omit locks that
// they need with two.
const minCPUs = 2

// resources is the part of an OCI spec that is used.
type resources struct {
	Linux struct {
		Resources struct {
			Memory struct {
				Limit uint64 `json:"limit"`
			} `json:"memory"`
			CPU struct {
				Quota  int64 `json:"quota"`
				Period int64 `json:"period"`
			} `json:"cpu"`
		} `json:"resources"`
	} `json:"linux"`
}

// Args returns args with the bundle's limits added, if they are the arguments of a
// runsc boot process that has none yet. host is the number of processors. If the bundle
// cannot be read, args are returned unchanged: the boot process reports the error.
func Args(args []string, host int) []string {
	at := slices.Index(args, "boot")
	if at < 0 || slices.Contains(args[at:], "--cpu-num") { // boot starts itself again inside a chroot
		return args
	}
	r, ok := read(args[at:])
	if !ok {
		return args
	}
	cpu := r.Linux.Resources.CPU
	var flags []string
	if cpu.Quota > 0 && cpu.Period > 0 {
		least := max(minCPUs, int(math.Ceil(float64(cpu.Quota)/float64(cpu.Period))))
		flags = append(flags, "--cpu-num", strconv.Itoa(min(least, host)),
			"--cpu-quota", strconv.FormatInt(cpu.Quota, 10), "--cpu-period", strconv.FormatInt(cpu.Period, 10))
	}
	args = slices.Insert(slices.Clone(args), at+1, flags...)
	if limit := r.Linux.Resources.Memory.Limit; limit > 0 {
		replace(args, "--total-memory", limit)
	}
	return args
}

func read(args []string) (r resources, ok bool) {
	for _, a := range args {
		if dir, found := strings.CutPrefix(a, "--bundle="); found {
			data, err := os.ReadFile(filepath.Join(dir, "config.json"))
			return r, err == nil && json.Unmarshal(data, &r) == nil
		}
	}
	return r, false
}

// replace lowers the value of a flag, if it is set.
func replace(args []string, name string, most uint64) {
	for i := range len(args) - 1 {
		if args[i] != name {
			continue
		}
		if n, err := strconv.ParseUint(args[i+1], 10, 64); err == nil && n > most {
			args[i+1] = strconv.FormatUint(most, 10)
		}
	}
}
