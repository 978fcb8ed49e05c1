// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var goModule = pattern.New(`(?m)^[ \t]*module[ \t]+["` + "`" + `]?([A-Za-z0-9._~/+-]{1,200})["` + "`" +
	`]?[ \t]*(?://.*)?$`)

// GoModules returns the Go modules of the repository at root: at its top, in more, in the directories
// directly below the top, and in those that its go.work uses; at most valid.MaxGoModules. A go.mod
// that cannot be read or understood is left out.
func GoModules(root fs.FS, more ...string) (modules []proposal.GoModule) {
	s := &setupScan{root: root}
	dirs := append([]string{"."}, more...)
	if work, ok := s.readText(".", "go.work"); ok {
		dirs = append(dirs, goWorkUses(work)...)
	}
	for _, e := range s.listDirectory(".") {
		if isWalked(e) {
			dirs = append(dirs, e.Name())
		}
	}
	for _, dir := range dirs {
		dir = path.Clean(strings.TrimSpace(dir))
		isKnown := slices.ContainsFunc(modules, func(m proposal.GoModule) bool { return m.Dir == dir })
		if isKnown || !fs.ValidPath(dir) || len(dir) > maxPattern || len(modules) == valid.MaxGoModules {
			continue
		}
		if text, ok := s.readText(dir, "go.mod"); ok {
			if m := goModule.FindStringSubmatch(text); m != nil {
				modules = append(modules, proposal.GoModule{Dir: dir, Path: m[1]})
			}
		}
	}
	return modules
}
