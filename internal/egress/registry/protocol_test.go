// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// protocols has for each registry that is described by whole paths what its clients request, as the
// documentation of the protocol or a client's log shows it, and what is beside that: other methods,
// publishing, accounts, search, other owners' data, escapes and queries.
var protocols = map[string]struct{ reads, refused []string }{
	"nuget": {
		reads: []string{
			"https://api.nuget.org/v3/index.json", "https://api.nuget.org/v3-flatcontainer/newtonsoft.json/index.json",
			"https://api.nuget.org/v3-flatcontainer/newtonsoft.json/13.0.3/newtonsoft.json.13.0.3.nupkg",
			"https://api.nuget.org/v3-flatcontainer/newtonsoft.json/13.0.3/newtonsoft.json.nuspec",
			"https://api.nuget.org/v3-flatcontainer/xunit/2.9.3-pre.4/xunit.2.9.3-pre.4.nupkg",
			"https://api.nuget.org/v3-index/repository-signatures/5.0.0/index.json", "https://api.nuget.org/v3/vulnerabilities/index.json",
			"https://api.nuget.org/v3-vulnerabilities/2024.11.19.11.31.42/vulnerability.base.json",
			"https://api.nuget.org/v3-vulnerabilities/2024.11.19.11.31.42/2024.11.19.17.31.43/vulnerability.update.json",
		},
		refused: []string{
			"https://api.nuget.org/", "https://api.nuget.org/v3/catalog0/index.json", "https://api.nuget.org/v3/registration5-gz-semver2/x/index.json",
			"https://api.nuget.org/v3-flatcontainer/", "https://api.nuget.org/v3-flatcontainer/x/1.0/a%2fb.nupkg", "https://api.nuget.org/v3-flatcontainer/x/../index.json",
			"https://api.nuget.org/v3-flatcontainer/x/index.json?secret=1", "https://www.nuget.org/api/v2/package/x/1.0", "https://azuresearch-usnc.nuget.org/query",
			"https://www.nuget.org/api/v2/package", "PUT https://api.nuget.org/v3-flatcontainer/x/index.json",
		},
	},
	"packagist": {
		reads: []string{
			"https://repo.packagist.org/packages.json", "https://repo.packagist.org/p2/symfony/console.json", "https://repo.packagist.org/p2/symfony/console~dev.json",
			"https://api.github.com/repos/symfony/console/zipball/0123456789abcdef0123456789abcdef01234567",
			"https://codeload.github.com/symfony/console/legacy.zip/0123456789abcdef0123456789abcdef01234567",
		},
		refused: []string{
			"https://packagist.org/search.json?q=x", "https://packagist.org/api/create-package", "https://packagist.org/packages/list.json", "POST https://packagist.org/downloads/",
			"https://repo.packagist.org/", "https://repo.packagist.org/p2/a/b.json?x=1", "https://repo.packagist.org/p2/a/b/c.json", "https://repo.packagist.org/security-advisories",
			"https://api.github.com/user", "https://api.github.com/repos/o/r", "https://api.github.com/repos/o/r/issues", "https://api.github.com/repos/o/r/contents/x",
			"https://api.github.com/repos/o/r/zipball/a/b", "https://api.github.com/repos/o/r/zipball/a%2fb", "https://api.github.com/repos/o/r/tarball/x", "https://codeload.github.com/o/r/zip/x",
			"POST https://api.github.com/repos/o/r/zipball/x", "https://github.com/o/r/archive/x.zip", "https://api.github.com/repos/o/r/zipball/x?d=1",
		},
	},
	"hex": {
		reads: []string{
			"https://repo.hex.pm/packages/jason", "https://repo.hex.pm/tarballs/jason-1.4.4.tar", "https://repo.hex.pm/tarballs/x-1.0.0-rc.1+b.tar", "https://repo.hex.pm/names", "https://repo.hex.pm/versions",
			"https://repo.hex.pm/public_key", "https://repo.hex.pm/installs/hex-1.x.csv", "https://repo.hex.pm/installs/1.14.0/hex-2.0.6.ez", "https://builds.hex.pm/installs/hex-1.x.csv.signed", "https://builds.hex.pm/installs/rebar.csv",
			"https://builds.hex.pm/installs/1.18.4/rebar3-3.25.1-otp-28", "https://builds.hex.pm/installs/1.20.0/hex-2.5.1-otp-28.ez",
		},
		refused: []string{
			"https://hex.pm/api/users/me", "https://hex.pm/api/packages", "POST https://hex.pm/api/publish", "https://repo.hex.pm/repos/acme/packages/x", "https://repo.hex.pm/docs/x-1.0.0.tar.gz",
			"https://repo.hex.pm/", "https://repo.hex.pm/packages/", "https://repo.hex.pm/packages/a/b", "https://repo.hex.pm/packages/a%2fb", "https://repo.hex.pm/packages/a?b", "https://repo.hex.pm/tarballs/x.tar.gz",
		},
	},
	"pub": {
		reads: []string{
			"https://pub.dev/api/packages/http", "https://pub.dev/api/packages/http/advisories", "https://pub.dev/api/packages/http/versions/1.2.0", "https://pub.dev/api/archives/http-1.2.0.tar.gz",
			"https://pub.dev/api/archives/x-1.2.0%2B3.tar.gz", "https://pub.dev/packages/http/versions/1.2.0.tar.gz",
		},
		refused: []string{
			"https://pub.dev/api/packages/versions/new", "https://pub.dev/api/packages/versions/newUploadFinish?upload_id=x", "https://pub.dev/api/search?q=x", "https://pub.dev/api/account/likes", "https://pub.dev/api/packages/http/publisher",
			"https://pub.dev/api/packages/http/uploaders", "PUT https://pub.dev/api/packages/http/options", "https://pub.dev/packages/http", "https://pub.dev/", "https://pub.dev/api/packages/http/../../account",
			"https://pub.dev/api/packages/http%2fpublisher", "https://pub.dev/api/packages/http?x", "https://pub.dev/authorized", "https://oauth2.googleapis.com/token",
		},
	},
	"jsr": {
		reads: []string{
			"https://jsr.io/@std/path/meta.json", "https://jsr.io/@std/path/1.0.8_meta.json", "https://jsr.io/@std/path/1.0.8/mod.ts", "https://jsr.io/@std/path/1.0.8/posix/deep/join.ts",
			"https://npm.jsr.io/@jsr/std__path", "https://npm.jsr.io/@jsr%2fstd__path", "https://npm.jsr.io/@jsr%2Fstd__path", "https://npm.jsr.io/~/11/@jsr/std__path/1.0.8.tgz",
		},
		refused: []string{
			"https://jsr.io/", "https://jsr.io/login", "https://jsr.io/@std", "https://jsr.io/@std/path", "https://jsr.io/@std/path/meta.json?x=1", "https://api.jsr.io/user", "https://api.jsr.io/packages?query=x",
			"POST https://api.jsr.io/scopes", "https://npm.jsr.io/-/whoami", "https://npm.jsr.io/-/v1/search", "https://npm.jsr.io/@jsr%2f..%2fx", "https://npm.jsr.io/@jsr%2fa%2fb", "https://npm.jsr.io/left-pad",
			"https://jsr.io/@std/path/1.0.8/a%2fb.ts", "https://jsr.io/@std/path/1.0.8/../../x", "https://jsr.io/@std/path/1.0.8/" + strings.Repeat("a", 201), "https://jsr.io/@std/path/1.0.8/" + strings.Repeat("a/", 300) + "a",
			"PUT https://npm.jsr.io/@jsr/std__path", "https://jsr.io/auth/callback", "https://jsr.io/@std/path/1.0.8/a%0Ab",
		},
	},
	"conda": {
		reads: []string{
			"https://conda.anaconda.org/conda-forge/linux-64/repodata.json.zst", "https://conda.anaconda.org/conda-forge/noarch/current_repodata.json", "https://conda.anaconda.org/bioconda/noarch/repodata.json.bz2",
			"https://conda.anaconda.org/conda-forge/linux-64/repodata_shards.msgpack.zst", "https://conda.anaconda.org/conda-forge/linux-64/shards/0af1.msgpack.zst", "https://conda.anaconda.org/conda-forge/linux-64/python-3.12.7-hc5c86c4_0_cpython.conda",
			"https://conda.anaconda.org/conda-forge/noarch/tzdata-2024b-hc8b5060_0.tar.bz2", "https://repo.anaconda.com/pkgs/main/linux-64/repodata.json.zst", "https://repo.anaconda.com/pkgs/main/linux-64/zlib-1.2.13-h5eee18b_1.conda",
		},
		refused: []string{
			"https://api.anaconda.org/user", "https://anaconda.org/account/login", "https://conda.anaconda.org/", "https://conda.anaconda.org/t/TOKEN/acme/linux-64/repodata.json", "https://conda.anaconda.org/conda-forge/linux-64/",
			"https://conda.anaconda.org/conda-forge/linux-64/x.conda?y=1", "https://conda.anaconda.org/conda-forge/a%2fb/x.conda", "https://repo.anaconda.com/miniconda/x.sh", "https://repo.anaconda.com/pkgs/main/linux-64/index.html",
			"POST https://api.anaconda.org/stage/x", "https://conda.anaconda.org/a/b/c/d/x.msgpack.zst",
		},
	},
	"swift": {
		reads: []string{
			"https://tuist.dev/api/registry/swift/identifiers?url=https%3A%2F%2Fgithub.com%2Fapple%2Fswift-log.git", "https://tuist.dev/api/registry/swift/apple/swift-log", "https://tuist.dev/api/registry/swift/apple/swift-log/1.6.3",
			"https://tuist.dev/api/registry/swift/apple/swift-log/1.6.3.zip", "https://registry.tuist.dev/swift/apple/swift-log/1.6.3/Package.swift?swift-version=6.0", "https://registry.tuist.dev/api/registry/swift/apple/swift-nio/2.0.0-rc.1+b",
			"https://t3.storage.dev/tuist-registry/registry/swift/apple/swift-log/1.6.3/source_archive.zip?X-Amz-Expires=600&X-Amz-Signature=0af1",
		},
		refused: []string{
			"https://tuist.dev/", "https://tuist.dev/api/projects", "https://tuist.dev/api/registry/swift/login", "POST https://tuist.dev/api/registry/swift/login", "PUT https://tuist.dev/api/registry/swift/apple/swift-log/9.9.9",
			"https://tuist.dev/api/registry/swift/a/b/1.0.0/Secrets.swift", "https://tuist.dev/api/registry/swift/a%2fb/c", "https://tuist.dev/api/registry/swift/../../projects", "https://registry.tuist.dev/up", "https://registry.tuist.dev/swift/login",
			"https://t3.storage.dev/evil/registry/swift/a/b/1.0.0/source_archive.zip", "https://t3.storage.dev/tuist-registry/", "https://t3.storage.dev/tuist-registry/registry/swift/a/b/1.0.0/x", "https://github.com/apple/swift-log.git/info/refs?service=git-upload-pack",
		},
	},
	"gradle": {
		reads: []string{
			"https://services.gradle.org/distributions/gradle-8.14.3-bin.zip", "https://services.gradle.org/distributions/gradle-8.14.3-bin.zip.sha256", "https://github.com/gradle/gradle-distributions/releases/download/v8.14.3/gradle-8.14.3-bin.zip",
			"https://release-assets.githubusercontent.com/github-production-release-asset/696192900/0a1b-2c?sp=r&sig=abc%2B", "https://plugins.gradle.org/m2/org/jetbrains/kotlin/jvm/org.jetbrains.kotlin.jvm.gradle.plugin/2.1.0/org.jetbrains.kotlin.jvm.gradle.plugin-2.1.0.pom",
			"https://plugins.gradle.org/m2/a/b/maven-metadata.xml", "https://plugins-artifacts.gradle.org/org.cyclonedx/cyclonedx-gradle-plugin/3.4.1/0af1/cyclonedx-gradle-plugin-3.4.1.jar",
		},
		refused: []string{
			"https://services.gradle.org/", "https://services.gradle.org/versions/current", "https://services.gradle.org/distributions/evil.zip", "https://services.gradle.org/distributions/gradle-1.zip?x=1", "https://github.com/gradle/gradle/releases/download/v1/gradle-1.zip",
			"https://github.com/evil/gradle-distributions/releases/download/v1/gradle-1.zip", "https://github.com/gradle/gradle-distributions/issues", "https://plugins.gradle.org/api/v1/publish/new/x", "https://plugins.gradle.org/search?term=x", "https://plugins.gradle.org/m2/a?x=1",
			"https://plugins.gradle.org/m2/a%2fb/c", "PUT https://plugins.gradle.org/m2/a/b/c.pom", "https://release-assets.githubusercontent.com/other/1/2", "https://scans.gradle.com/in/x",
		},
	},
}

// Each registry is read at its protocol's paths by GET and HEAD, and nothing else of its hosts is reached: not by
// another method, with a body, by an unknown path or with a query that the protocol does not have.
func TestProtocols(t *testing.T) {
	engine, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lone(t, nil)
	for _, name := range Names() {
		whole := slices.ContainsFunc(public()[name], func(o Origin) bool { return strings.HasSuffix(o.Path, "!") })
		if _, has := protocols[name]; has != whole {
			t.Errorf("%s: whole paths %v, a protocol %v", name, whole, has)
		}
	}
	for name, protocol := range protocols {
		list, err := Discover(t.Context(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		if list[0].Credentials != nil {
			t.Errorf("%s has credentials", name)
		}
		decide := func(text string, size int64) proposal.EgressDecision {
			method, address, found := strings.Cut(text, " ")
			if !found {
				method, address = "GET", text
			}
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			d, err := engine.Egress(t.Context(), proposal.Egress{
				Command: "setup", Phase: proposal.PhaseSetup, Kind: points.EgressRequest, Protocol: "https", Name: u.Hostname(), Address: "192.0.2.1", Port: 443, Method: method, Path: u.Path,
				Escaped: strings.Contains(strings.ToLower(u.EscapedPath()), "%2f"), Query: len(u.RawQuery), Size: size,
				Grants: []string{"registry:" + name}, Registries: Match(list, u.Hostname(), 443, u.Path),
			})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		for _, read := range protocol.reads {
			for _, method := range []string{"GET ", "HEAD "} {
				if d := decide(method+read, 0); d.Effect != proposal.Allow {
					t.Errorf("%s: %s%s: %+v", name, method, read, d.Reason)
				}
			}
			for _, method := range []string{"POST ", "PUT ", "DELETE ", "PATCH ", "OPTIONS "} {
				if d := decide(method+read, 0); d.Effect != proposal.Deny {
					t.Errorf("%s: %s%s is allowed", name, method, read)
				}
			}
			if d := decide("GET "+read, 7); d.Effect != proposal.Deny {
				t.Errorf("%s: %s with a body is allowed", name, read)
			}
			for _, more := range []string{"%00", ";x", "%20", "%5cx", "%252fx", "%0a", "%3fx"} {
				path, query, _ := strings.Cut(read, "?")
				if d := decide("GET "+path+more+"?"+query, 0); d.Effect != proposal.Deny {
					t.Errorf("%s: %q behind %s is allowed", name, more, read)
				}
			}
			i := strings.LastIndex(read, "/")
			if strings.Count(read, "/") == 3 {
				continue // it has one segment
			}
			if d := decide("GET "+read[:i]+"%2F"+read[i+1:], 0); d.Effect != proposal.Deny && !strings.Contains(read, "//npm.jsr.io/") {
				t.Errorf("%s: %s with an escaped slash is allowed", name, read)
			}
		}
		for _, refused := range protocol.refused {
			if d := decide(refused, 0); d.Effect != proposal.Deny {
				t.Errorf("%s: %s is allowed by %v", name, refused, d.Rules)
			}
		}
	}
}

// A mirror is read at the same paths, below its own; a registry that is described as text and read again is the same.
func TestMirrorOfTable(t *testing.T) {
	lone(t, nil)
	t.Setenv("HEX_MIRROR", "https://ada:canary@hex.example:8443/all/")
	list, err := Discover(t.Context(), []string{"hex"})
	if err != nil {
		t.Fatal(err)
	}
	if list[0].Credentials != nil || list[0].Env["HEX_MIRROR"] != "https://hex.example:8443/all/" || list[0].Source != "HEX_MIRROR" {
		t.Errorf("%+v", list[0])
	}
	var again []Origin
	for _, o := range list[0].Origins {
		read, err := ParseOrigin(o.String())
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, read)
	}
	list[0].Origins = again
	for place, want := range map[string]bool{
		"hex.example /all/packages/jason": true, "hex.example /all/packages/a/b": false, "hex.example /packages/jason": false, "hex.example /all/api/users/me": false,
		"repo.hex.pm /packages/jason": false, "builds.hex.pm /installs/rebar.csv": true,
	} {
		host, path, _ := strings.Cut(place, " ")
		port := map[string]int{"hex.example": 8443}[host]
		if got := len(Match(list, host, max(port, 443), path)) > 0; got != want {
			t.Errorf("%s: %v", place, got)
		}
	}
	t.Setenv("HEX_MIRROR", "ftp://ada:canary@hex.example")
	if _, err := Discover(t.Context(), []string{"hex"}); err == nil || containsCanary(err.Error()) {
		t.Errorf("error %v", err)
	}
}
