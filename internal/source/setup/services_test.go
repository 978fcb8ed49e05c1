// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The server that the root file system has is started, and the newest of several.
func TestAddServices(t *testing.T) {
	file := &fstest.MapFile{}
	tests := map[string]struct {
		service, file string
		want          string // in the text
	}{
		"Debian":                {"postgres", "usr/lib/postgresql/9/bin/initdb usr/lib/postgresql/15/bin/initdb usr/lib/postgresql/14/bin/initdb", "\n/usr/lib/postgresql/15/bin/initdb "},
		"Red Hat":               {"postgres", "usr/pgsql-16/bin/initdb", "\n/usr/pgsql-16/bin/initdb "},
		"a name for a shell":    {"postgres", "usr/lib/postgresql/15;id/bin/initdb", "\ninitdb "},
		"in PATH, or not there": {"postgres", "usr/bin/initdb", "\ninitdb "},
		"MariaDB":               {"mysql", "usr/bin/mariadb-install-db usr/sbin/mysqld", "\nmariadb-install-db "},
		"MySQL":                 {"mysql", "usr/sbin/mysqld", "\nmysqld --no-defaults --initialize-insecure "},
		"neither":               {"mysql", "", "\nmariadb-install-db "},
		"Redis":                 {"redis", "", "\nredis-server --bind 127.0.0.1 "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for path := range strings.FieldsSeq(test.file) {
				root[path] = file
			}
			var s Setup
			s.AddServices([]string{test.service}, root)
			p := s.Services[0]
			if !strings.Contains(p.Run, test.want) || p.Origin != proposal.OriginService || p.Phase != proposal.PhaseSetup || p.ID != "service-"+test.service || len(p.Network) > 0 {
				t.Errorf("%+v\nwant %q", p, test.want)
			}
		})
	}
}

// The variables are those of the services, and DATABASE_URL is the first one's.
func TestServiceVariables(t *testing.T) {
	var s Setup
	s.AddServices([]string{"redis", "mysql", "postgres"}, fstest.MapFS{})
	want := map[string]string{
		"PGHOST": "127.0.0.1", "PGPORT": "5432", "PGUSER": "postgres", "PGDATABASE": "postgres", "REDIS_URL": "redis://127.0.0.1:6379",
		"MYSQL_HOST": "127.0.0.1", "MYSQL_TCP_PORT": "3306", "MYSQL_UNIX_PORT": "/tmp/fumehood-mysql/socket", "DATABASE_URL": "mysql://root@127.0.0.1:3306/test",
	}
	if diff := cmp.Diff(want, s.Env); diff != "" {
		t.Error(diff)
	}
}

// A report from another host may have the text of another version, and nothing else.
func TestAddReportedServices(t *testing.T) {
	elsewhere := func(service, file string) string {
		var s Setup
		s.AddServices([]string{service}, fstest.MapFS{file: &fstest.MapFile{}})
		return s.Services[0].Run
	}
	debian, redHat, oracle := elsewhere("postgres", "usr/lib/postgresql/13/bin/initdb"), elsewhere("postgres", "usr/pgsql-16/bin/initdb"), elsewhere("mysql", "usr/sbin/mysqld")
	for name, text := range map[string]string{"postgres": debian, "postgres ": redHat, "mysql": oracle, "redis": redisScript("")} {
		var s Setup
		s.AddReportedServices([]string{strings.TrimSpace(name)}, []string{"echo x", text})
		if got := s.Services[0].Run; got != text {
			t.Errorf("%s: got %q, want %q", name, got, text)
		}
	}
	for _, text := range []string{debian + "; id", strings.ReplaceAll(debian, "/13/", "/13/../"), strings.Replace(debian, "127.0.0.1/32", "0.0.0.0/0", 1), strings.Replace(debian, "/usr/lib/postgresql/13/bin/pg_ctl", "/workspace/pg_ctl", 1), ""} {
		var s Setup
		s.AddReportedServices([]string{"postgres"}, []string{text})
		if got := s.Services[0].Run; got != postgresScript("") {
			t.Errorf("%q became %q", text, got)
		}
	}
	var none Setup
	if none.AddReportedServices(nil, []string{debian}); len(none.Services) > 0 {
		t.Error("a service that is not configured was added")
	}
}

// Every service of the configuration has a server, and each text keeps its data in /tmp.
func TestServers(t *testing.T) {
	for name, server := range servers {
		text := server.text("")
		if !strings.Contains(text, "/tmp/fumehood-"+name) || slices.ContainsFunc([]string{"0.0.0.0", "/workspace", "$("}, func(part string) bool { return strings.Contains(text, part) }) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// The shipped policy allows the text of each service, without a network and without the
// pull request's programs; a proposer may not have those that need the rules for services.
func TestPolicyAllowsServices(t *testing.T) {
	engine, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"postgres": postgresScript(""), "postgres 15": postgresScript("/usr/lib/postgresql/15/bin/"), "postgres of Red Hat": postgresScript("/usr/pgsql-16/bin/"),
		"mysql": mysqlScript(""), "mariadb": mysqlScript(mariaDB), "redis": redisScript(""),
	} {
		p := proposal.Proposal{ID: "x", Run: text, Phase: proposal.PhaseSetup, Origin: proposal.OriginService, Timeout: proposal.Duration(ServiceTimeout)}
		analysis := parse.Analyze(p)
		d, err := engine.Decide(t.Context(), p, analysis)
		if err != nil || d.Effect != proposal.Allow || len(d.Grant.Network)+len(d.Grant.Exec) > 0 || d.Grant.Limits.Wall != p.Timeout {
			t.Errorf("%s: %s %+v, %v", name, d.Effect, d.Reasons, err)
		}
		p.Origin = ""
		if d, err = engine.Decide(t.Context(), p, analysis); err != nil || (d.Effect == proposal.Allow) != (name == "redis") {
			t.Errorf("%s of a proposer: %s, %v", name, d.Effect, err)
		}
	}
}
