// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ServiceTimeout is how long a service may take until it is ready.
const ServiceTimeout = 2 * time.Minute

// A server is a service that can be started: its data is in /tmp, it listens on loopback
// only, and its command ends when it is ready.
type server struct {
	title string
	text  func(bin string) string
	env   [][2]string
	url   string // the value of DATABASE_URL, for the first of them
}

var servers = map[string]server{
	"postgres": {
		title: "PostgreSQL", text: postgresScript,
		env: [][2]string{{"PGHOST", "127.0.0.1"}, {"PGPORT", "5432"}, {"PGUSER", "postgres"},
			{"PGDATABASE", "postgres"}},
		url: "postgres://postgres@127.0.0.1:5432/postgres",
	},
	"redis": {
		title: "Redis", text: redisScript,
		env: [][2]string{{"REDIS_URL", "redis://127.0.0.1:6379"}},
	},
	"mysql": {
		title: "MySQL or MariaDB", text: mysqlScript,
		env: [][2]string{{"MYSQL_HOST", "127.0.0.1"}, {"MYSQL_TCP_PORT", "3306"},
			{"MYSQL_UNIX_PORT", "/tmp/fumehood-mysql/socket"}},
		url: "mysql://root@127.0.0.1:3306/test",
	},
}

// AddServices adds to s the commands that start the named services, in this order, and
// their variables. root is the root file system that the sandbox will have. The command of
// a server that is not there fails with 127.
//
// Each command ends when its server answers, or fails after ServiceTimeout at the latest,
// with the last lines of the server's log. The servers have no password and can be reached
// by the sandbox's commands only.
func (s *Setup) AddServices(names []string, root fs.FS) {
	for _, name := range names {
		bin := ""
		switch name {
		case "postgres":
			bin = postgresDirectory(root)
		case "mysql":
			if hasProgram(root, "mariadb-install-db") || !hasProgram(root, "mysqld") {
				bin = mariaDB
			}
		}
		s.addService(name, servers[name].text(bin))
	}
}

// hasProgram reports whether root has a program in a directory for programs.
func hasProgram(root fs.FS, program string) bool {
	return slices.ContainsFunc([]string{"usr/local/sbin/", "usr/local/bin/", "usr/sbin/", "usr/bin/"},
		func(dir string) bool {
			_, err := fs.Lstat(root, dir+program)
			return err == nil
		})
}

func (s *Setup) addService(name, text string) {
	s.Services = append(s.Services, proposal.Proposal{
		ID: "service-" + name, Run: text, Phase: proposal.PhaseSetup, Origin: proposal.OriginService,
		Timeout: proposal.Duration(ServiceTimeout),
		Why:     servers[name].title + " for the commands of this run, on localhost",
	})
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	for _, v := range servers[name].env {
		s.Env[v[0]] = v[1]
	}
	if url := servers[name].url; url != "" && s.Env["DATABASE_URL"] == "" {
		s.Env["DATABASE_URL"] = url
	}
}

// AddReportedServices adds the commands that start the named services, as a run on another
// host may have had them: texts is what its report says. What differs from every text that
// this package makes is replaced by one that it makes.
func (s *Setup) AddReportedServices(names []string, texts []string) {
	for _, name := range names {
		candidates := []string{servers[name].text(""), servers[name].text(mariaDB)}
		if name == "postgres" {
			candidates = candidates[:1]
			for _, text := range texts {
				if m := initdb.FindStringSubmatch(text); m != nil {
					candidates = append(candidates, postgresScript(m[1]))
				}
			}
		}
		at := slices.IndexFunc(candidates, func(text string) bool { return slices.Contains(texts, text) })
		s.addService(name, candidates[max(at, 0)])
	}
}

// The directories where distributions keep the programs of PostgreSQL's server, which are
// not in PATH.
var (
	postgresPlaces = []string{"usr/lib/postgresql/*/bin/initdb", "usr/pgsql-*/bin/initdb"}
	initdb         = pattern.New(`(?m)^(/usr/(?:lib/postgresql/|pgsql-)[0-9]{1,3}/bin/)initdb `)
	version        = pattern.New(`[0-9]{1,3}`)
)

// postgresDirectory returns the directory of the newest server, with a slash, or "".
func postgresDirectory(root fs.FS) string {
	best, newest := "", -1
	for _, pattern := range postgresPlaces {
		found, _ := fs.Glob(root, pattern)
		for _, file := range found {
			dir := "/" + path.Dir(file) + "/"
			n, err := strconv.Atoi(version.FindString(dir))
			if err == nil && n > newest && initdb.MatchString(dir+"initdb ") {
				best, newest = dir, n
			}
		}
	}
	return best
}

// postgresScript returns the text that starts PostgreSQL. The role postgres may create databases;
// it is no superuser, because a superuser can start programs as the server's user. No client
// can connect as the superuser.
func postgresScript(bin string) string {
	const dir, log = "/tmp/fumehood-postgres", "/tmp/fumehood-postgres/log"
	return joinLines(
		"mkdir -m 700 "+dir,
		orShow(log, bin+"initdb -D "+dir+"/data -U service -A reject --no-sync --no-instructions > "+log+" 2>&1"),
		orShow(log, `printf "create role postgres login createdb\nalter database postgres owner to postgres\n" | `+bin+
			"postgres --single -D "+dir+"/data template1 > "+log+" 2>&1"),
		`printf "host all service all reject\nhost all all 127.0.0.1/32 trust\nhost all all ::1/128 trust\n" > `+dir+
			"/data/pg_hba.conf",
		orShow(log, bin+"pg_ctl -D "+dir+"/data -l "+log+
			" -s -w -t 60 -o '-c listen_addresses=localhost -c unix_socket_directories="+dir+
			" -c fsync=off -c log_min_messages=fatal' start"),
	)
}

// redisScript returns the text that starts Redis, without persistence. MODULE would let a client
// load code.
func redisScript(string) string {
	const dir, log = "/tmp/fumehood-redis", "/tmp/fumehood-redis/log"
	return joinLines(
		"mkdir -m 700 "+dir,
		orShow(log, "redis-server --bind 127.0.0.1 --port 6379 --dir "+dir+
			" --save '' --rename-command MODULE '' --daemonize yes --logfile "+log),
		waitScript("Ready to accept connections", log),
	)
}

// mariaDB is the bin of mysql for MariaDB.
const mariaDB = "mariadb"

// mysqlScript returns the text that starts MySQL or MariaDB. Its user is root, without a password.
// Clients cannot load code: the server loads it only from its read-only plugin directory.
func mysqlScript(flavor string) string {
	const dir, log = "/tmp/fumehood-mysql", "/tmp/fumehood-mysql/log"
	install := "mysqld --no-defaults --initialize-insecure --datadir=" + dir + "/data"
	if flavor == mariaDB {
		install = "mariadb-install-db --no-defaults --datadir=" + dir +
			"/data --auth-root-authentication-method=normal --skip-test-db"
	}
	return joinLines(
		"mkdir -m 711 "+dir,
		orShow(log, install+" > "+log+" 2>&1"),
		"echo 'create database test;' > "+dir+"/init.sql",
		"mysqld --no-defaults --datadir="+dir+"/data --bind-address=127.0.0.1 --port=3306 --socket="+dir+
			"/socket --pid-file="+dir+"/pid --init-file="+dir+"/init.sql > "+log+" 2>&1 < /dev/null &",
		waitScript("ready for connections", log),
	)
}

// orShow adds to a command that it prints the end of a log and fails, if it fails.
func orShow(log, command string) string {
	return fmt.Sprintf("%s || { status=$?; tail -n 20 %s; exit $status; }", command, log)
}

// waitScript waits until a server's log has the words, or prints its end and fails.
func waitScript(words, log string) string {
	return joinLines(
		"for ((i = 0; i < 300; i++)); do",
		fmt.Sprintf("  grep -q '%s' %s && exit 0", words, log),
		"  sleep 0.2",
		"done",
		fmt.Sprintf("tail -n 20 %s", log),
		"exit 1",
	)
}

func joinLines(list ...string) string { return strings.Join(list, "\n") }
