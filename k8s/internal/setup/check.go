// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/fumehood/fumehood/internal/author/doctor"
)

// config is the part of containerd's configuration that is about the runtime fumehood. Versions before
// 3 have the runtimes elsewhere. Its imports are of no use: containerd prints a default that it does not follow.
type config struct {
	Version int
	Plugins struct {
		CRI struct {
			Containerd struct{ Runtimes map[string]runtime }
		} `toml:"io.containerd.cri.v1.runtime"`
	}
}

type runtime struct {
	Type           string   `toml:"runtime_type"`
	Path           string   `toml:"runtime_path"`
	PodAnnotations []string `toml:"pod_annotations"`
	Annotations    []string `toml:"container_annotations"`
}

func (c config) runtime() runtime { return c.Plugins.CRI.Containerd.Runtimes["fumehood"] }

// Check examines whether this program is the one that Install has put on the node, and whether
// containerd starts it.
func Check(ctx context.Context) []doctor.Check {
	program, err := os.Executable()
	if err != nil {
		return []doctor.Check{doctor.FailedCheck("version", failed(err))}
	}
	return append([]doctor.Check{checkVersion(ctx, filepath.Dir(program)), checkDropIn(doctor.DropIn, program)},
		checkContainerd(ctx, program)...)
}

// checkVersion computes the name that Install gave to the directory.
func checkVersion(ctx context.Context, dir string) doctor.Check {
	name, _, err := digest(ctx, dir)
	if err == nil && name != filepath.Base(dir) {
		err = stop("setup.changed", dir+" is not what was installed there", "install it, or find out who changed it",
			nil)
	}
	if err != nil {
		return doctor.FailedCheck("version", err)
	}
	return doctor.Check{Name: "version", State: doctor.OK, Detail: "the files are those that were installed"}
}

func checkDropIn(path, program string) doctor.Check {
	var c config
	_, err := toml.DecodeFile(path, &c)
	if err == nil && c.runtime().Path != program {
		err = fmt.Errorf("%s: runtime_path is %q, not %q", path, c.runtime().Path, program)
	}
	if err != nil {
		return doctor.FailedCheck("drop-in",
			stop("setup.config", "containerd's runtime fumehood is not this program", "run "+doctor.Shim+" install",
				err))
	}
	return doctor.Check{Name: "drop-in", State: doctor.OK, Detail: path + " names this program"}
}

// checkContainerd reads the configuration that containerd makes of all its files.
func checkContainerd(ctx context.Context, program string) []doctor.Check {
	containerd, err := exec.LookPath("containerd")
	if err != nil {
		return []doctor.Check{{Name: "containerd", State: doctor.Unknown,
			Detail: "its configuration was not checked: the program is not in PATH",
			Fix:    "check that containerd config dump has the runtime fumehood"}}
	}
	text, err := doctor.RunPrivate(ctx, containerd, "config", "dump")
	var c config
	if err == nil {
		err = toml.Unmarshal(text, &c)
	}
	if err != nil {
		return []doctor.Check{doctor.FailedCheck("containerd",
			stop("setup.config", "cannot read containerd's configuration", "correct /etc/containerd", err))}
	}
	checks := []doctor.Check{c.check(program)}
	if doctor.IsReady(checks) {
		checks = append(checks, c.runtime().checkAnnotations())
	}
	return checks
}

func (c config) check(program string) doctor.Check {
	k := doctor.Check{Name: "containerd", State: doctor.Missing}
	switch r := c.runtime(); {
	case c.Version < 3:
		k.Detail, k.Fix = fmt.Sprintf("its configuration has version %d: it does not read the runtime fumehood",
			c.Version), "use containerd 2.0 or later"
	case r.Path == "":
		k.Detail, k.Fix = "it does not read "+doctor.DropIn,
			`add imports = ["`+filepath.Dir(doctor.DropIn)+
				`/*.toml"] to /etc/containerd/config.toml: without that line, containerd imports nothing`
	case r.Path != program || r.Type != runtimeType:
		k.Detail, k.Fix = fmt.Sprintf("its runtime fumehood is %q at %q, not this program", r.Type, r.Path),
			"remove the runtime from other files of its configuration"
	default:
		k.State, k.Detail = doctor.OK,
			"it starts this program for the runtime fumehood, if it was started after the installation"
	}
	return k
}

// checkAnnotations says what of a pod reaches the shim.
func (r runtime) checkAnnotations() doctor.Check {
	k := doctor.Check{Name: "annotations", State: doctor.Limited}
	passes := func(patterns []string, name string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { matched, _ := path.Match(p, name); return matched })
	}
	switch {
	case !passes(r.PodAnnotations, "fumehood.dev/policy"):
		k.Detail, k.Fix = "those of pods do not reach the shim: pods cannot request a policy or a network",
			`add "fumehood.dev/*" to pod_annotations`
	case passes(slices.Concat(r.PodAnnotations, r.Annotations), "dev.gvisor.x"):
		k.Detail, k.Fix = "containerd passes on dev.gvisor.*, which the shim removes",
			"remove that pattern from pod_annotations and container_annotations"
	default:
		k.State, k.Detail = doctor.OK, "those of pods that begin with fumehood.dev/ reach the shim"
	}
	return k
}
