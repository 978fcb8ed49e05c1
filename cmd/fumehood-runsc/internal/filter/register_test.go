// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !race

package filter

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gvisor.dev/gvisor/pkg/bpf"
	"gvisor.dev/gvisor/pkg/seccomp"
	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/pkg/sentry/platform/systrap"
	boot "gvisor.dev/gvisor/runsc/boot/filter"
	bootconfig "gvisor.dev/gvisor/runsc/boot/filter/config"
	gofer "gvisor.dev/gvisor/runsc/fsgofer/filter"
	goferconfig "gvisor.dev/gvisor/runsc/fsgofer/filter/config"
)

// The options below are set as runsc's loader and gofer set them for fumehood's
// flags. The program found by their name must be exactly the one that upstream
// would build at run time for this process.

func sentryOptions() map[string]bootconfig.Options {
	platform := (*systrap.Systrap)(nil).SeccompInfo()
	return map[string]bootconfig.Options{
		"directfs":      {Platform: platform, HostFilesystem: true, ControllerFD: 7},
		"no host files": {Platform: platform, ControllerFD: 7},
	}
}

var goferOptions = map[string]goferconfig.Options{
	"directfs":            {DirectFS: true},
	"directfs and lisafs": {DirectFS: true, LisafsNeeded: true},
	"lisafs":              {LisafsNeeded: true},
	"neither":             {},
}

func TestSentryFindsItsProgram(t *testing.T) {
	Register([]string{"--root=/run/x", "boot", "--bundle=/b"})
	for name, opt := range sentryOptions() {
		t.Run(name, func(t *testing.T) {
			program, ok := boot.GetPrecompiled(opt.ConfigKey())
			if !ok {
				t.Fatalf("no program is registered for %s", opt.ConfigKey())
			}
			rules, denied := bootconfig.Rules(opt)
			compare(t, program, opt.Vars(), rules, denied, bootconfig.SeccompOptions(opt))
		})
	}
}

func TestGoferFindsItsProgram(t *testing.T) {
	Register([]string{"gofer", "--bundle=/b"})
	for name, opt := range goferOptions {
		t.Run(name, func(t *testing.T) {
			program, ok := gofer.GetPrecompiled(opt.ConfigKey())
			if !ok {
				t.Fatalf("no program is registered for %s", opt.ConfigKey())
			}
			rules, denied := goferconfig.Rules(opt)
			compare(t, program, opt.Vars(), rules, denied, seccomp.ProgramOptions{})
		})
	}
}

// The two tests above compare every program of the file.
func TestEveryProgramIsCompared(t *testing.T) {
	var shipped, compared []string
	for _, p := range append(bootPrograms(), goferPrograms()...) {
		shipped = append(shipped, p.Name)
	}
	for _, opt := range sentryOptions() {
		compared = append(compared, opt.ConfigKey())
	}
	for _, opt := range goferOptions {
		compared = append(compared, opt.ConfigKey())
	}
	slices.Sort(shipped)
	slices.Sort(compared)
	if diff := cmp.Diff(compared, shipped); diff != "" {
		t.Errorf("programs (-compared +shipped):\n%s", diff)
	}
}

func TestWiderVariantsAreNotShipped(t *testing.T) {
	Register([]string{"boot"})
	wide := bootconfig.Options{Platform: (*systrap.Systrap)(nil).SeccompInfo(), HostNetwork: true}
	if _, ok := boot.GetPrecompiled(wide.ConfigKey()); ok {
		t.Errorf("a program for host networking is registered: %s", wide.ConfigKey())
	}
}

func compare(t *testing.T, program precompiledseccomp.Program, vars precompiledseccomp.Values,
	rules, denied seccomp.SyscallRules, options seccomp.ProgramOptions) {
	t.Helper()
	got, err := program.RenderInstructions(vars)
	if err != nil {
		t.Fatalf("cannot render the registered program: %v", err)
	}
	fresh := seccomp.Program{
		RuleSets: []seccomp.RuleSet{{Rules: denied}, {Rules: rules, Action: seccomp.Allow}},
		Options:  options,
	}
	want, _, err := fresh.Build()
	if err != nil {
		t.Fatalf("cannot compile upstream's rules: %v", err)
	}
	if diff := cmp.Diff([]bpf.Instruction(want), got); diff != "" {
		t.Errorf("the registered program is not what upstream builds (-upstream +registered):\n%s", diff)
	}
}
