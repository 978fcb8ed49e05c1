// SPDX-License-Identifier: Apache-2.0

package sandbox

// Programs are those of a directory that is the root of a container, as the host sees it. They are
// looked for when a method is first called. Nothing outside of the directory is read, whatever
// links it has, as long as it does not change meanwhile.
type Programs struct{ index sameIndex }

// ProgramsOf returns the programs of dir, an absolute path.
func ProgramsOf(dir string) *Programs {
	return &Programs{index: sameIndex{roots: readOnlyRoot{files: hostFiles{},
		binds: []Bind{{Source: dir, Target: "/"}}}}}
}

// SameContent returns, of those with this content, up to 32 paths inside, sorted.
func (p *Programs) SameContent(size uint64, digest string) []string {
	return p.index.namesOfContent(size, digest)
}

// HardLinks returns the hard links of the program at a path inside if it has so many that it must be
// many tools in one.
func (p *Programs) HardLinks(path string) []string { return p.index.hardLinks(path) }
