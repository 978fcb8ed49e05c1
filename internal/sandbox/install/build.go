// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const ldflags = "-s -w -X gvisor.dev/gvisor/runsc/version.version=" + GVisorVersion

// releaseFlags make the build independent of the source's location.
var releaseFlags = []string{"-trimpath"}

// localFlags compile a third less than releaseFlags. Without -trimpath the build reuses
// the packages that "go run" or "go build" of fumehood compiled. Packages that only
// runsc needs get no debug information, which -s and -w would drop anyway.
var localFlags = []string{"-gcflags=gvisor.dev/gvisor/pkg/sentry/...=-dwarf=false",
	"-gcflags=gvisor.dev/gvisor/runsc/...=-dwarf=false"}

// buildInstallation makes an installation from root's sources in dir, which must be empty, for
// linux on arch. If arch is another machine's, the result cannot be tested here; the
// prewarmer, which only saves time, is then left out.
func buildInstallation(ctx context.Context, root, key, dir, arch string, flags []string, progress func(string)) error {
	if err := compileRunsc(ctx, root, dir, arch, flags, progress); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, sidecarDir), 0o755); err != nil {
		return buildFailure("cannot prepare the installation", err)
	}
	// The sentry is the same program. Upstream requires a separate file for it if there
	// is a prewarmer; a link costs nothing and shares its pages.
	if err := os.Link(filepath.Join(dir, runscName), filepath.Join(dir, sentryName)); err != nil {
		return buildFailure("cannot link the sentry", err)
	}
	m := manifest{
		Schema: manifestSchema, GVisor: GVisorVersion, Go: runtime.Version(), Platform: platformOf(arch), Source: key,
		Prewarmer: "without the prewarmer " + prewarmerCost + ": built on another machine than " + arch +
			", where it could not be tested",
	}
	if arch == runtime.GOARCH {
		if err := checkVersion(ctx, dir); err != nil {
			return err
		}
		m.Prewarmer = buildPrewarmer(ctx, dir)
	}
	if m.Prewarmer != "" {
		progress(m.Prewarmer)
	}
	return sealInstallation(dir, m)
}

func checkVersion(ctx context.Context, dir string) error {
	version := exec.CommandContext(ctx, filepath.Join(dir, runscName), "--version")
	if text, err := version.Output(); err != nil || !bytes.Contains(text, []byte("runsc version "+GVisorVersion+"\n")) {
		return buildFailure(fmt.Sprintf("the new %s reports version %q", runscName, outputTail(text)), err)
	}
	return nil
}

// usualBuild is how long a build with an empty build cache takes on two processors.
const usualBuild = "40 s to 2 min"

// compileRunsc runs the go command, and reports every ten seconds that it is still running.
func compileRunsc(ctx context.Context, root, dir, arch string, flags []string, progress func(string)) error {
	progress("building " + runscName + " from gVisor " + GVisorVersion + ", once; this usually takes " + usualBuild)
	begun := time.Now()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for tick := time.NewTicker(10 * time.Second); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				progress(fmt.Sprintf("still building %s (%.0f s of usually %s)", runscName, time.Since(begun).Seconds(),
					usualBuild))
			}
		}
	}()
	if err := goBuild(ctx, root, dir, arch, slices.Concat(flags, []string{"-ldflags", ldflags}), "./cmd/"+runscName,
		"./cmd/"+initName); err != nil {
		return err
	}
	progress(fmt.Sprintf("built %s in %.0f s", runscName, time.Since(begun).Seconds()))
	return nil
}

// goBuild compiles commands of the module in root, by their paths, into dir, with these flags and
// none from the environment.
func goBuild(ctx context.Context, root, dir, arch string, flags []string, commands ...string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return buildFailure("cannot find the go command", err)
	}
	args := slices.Concat([]string{"build", "-buildvcs=false", "-o", dir + string(filepath.Separator)}, flags)
	args = append(args, commands...)
	cmd := exec.CommandContext(ctx, goTool, args...)
	cmd.Dir, cmd.Env = root, append(buildEnv(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-mod=readonly",
		"GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // lets it remove its files
	cmd.WaitDelay = 5 * time.Second
	if text, err := cmd.CombinedOutput(); err != nil {
		return buildFailure("cannot build "+strings.Join(commands, " and ")+": "+outputTail(text), err)
	}
	return nil
}

// sealInstallation makes the files read-only and writes m, with their digests, next to them.
func sealInstallation(dir string, m manifest) error {
	names := []string{initName, runscName, sentryName}
	if m.isPrewarmed() {
		names = append(names, prewarmerName)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, 0o555); err != nil {
			return buildFailure("cannot seal the installation", err)
		}
		f, err := describeFile(path, name)
		if err != nil {
			return buildFailure("cannot seal the installation", err)
		}
		m.Files = append(m.Files, f)
	}
	if err := m.writeManifest(dir); err != nil {
		return buildFailure("cannot seal the installation", err)
	}
	for _, name := range []string{".", sidecarDir} { // whatever the umask is
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			return buildFailure("cannot seal the installation", err)
		}
	}
	return nil
}

func describeFile(path, name string) (manifestFile, error) {
	file, err := os.Open(path)
	if err != nil {
		return manifestFile{}, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	return manifestFile{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// buildEnv returns the part of our environment that compilers get: locations, but no
// tokens and nothing that changes the result.
func buildEnv() []string {
	kept := []string{
		"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
		"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOTMPDIR", "GOTOOLCHAIN",
		"GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	}
	return slices.DeleteFunc(os.Environ(), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return !slices.Contains(kept, strings.ToUpper(name))
	})
}

// outputTail returns the end of a compiler's output, which contains the error.
func outputTail(text []byte) string {
	const limit = 2000
	text = bytes.TrimSpace(text)
	if len(text) > limit {
		text = append([]byte("…"), text[len(text)-limit:]...)
	}
	return string(text)
}

func buildFailure(message string, err error) error {
	return &proposal.StopError{
		Code: CodeBuild, Message: message, Err: err,
		Hint: "building needs Go (the version in go.mod), its modules from the cache or the network, " +
			"and 300 MB of disk; or install the release, which carries " + runscName,
	}
}
