package tabular_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// password is that of the server that postgres starts.
const password = "wide open"

// postgres starts a PostgreSQL server of the test's own, of the version that is installed, and returns how to connect
// to it and what stops it at once; it stops at the end of the test in any case. The server refuses to run as root, so
// that it runs as postgres or nobody then.
func postgres(t testing.TB) (connection string, stop func()) {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		t.Fatal("this test starts PostgreSQL, which is not installed: apt-get install postgresql")
	}
	bin := filepath.Dir(found[len(found)-1])
	dir := testkit.Get(os.MkdirTemp("", "parley-postgres-*"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	var as []string
	if os.Geteuid() == 0 {
		owner, err := user.Lookup("postgres")
		if err != nil {
			owner = testkit.Get(user.Lookup("nobody"))(t)
		}
		uid, gid := testkit.Get(strconv.Atoi(owner.Uid))(t), testkit.Get(strconv.Atoi(owner.Gid))(t)
		testkit.Do(t, os.Chown(dir, uid, gid))
		as = []string{"setpriv", "--reuid=" + owner.Uid, "--regid=" + owner.Gid, "--clear-groups"}
	}
	run := func(name string, args ...string) {
		t.Helper()
		words := append(append([]string{}, as...), append([]string{filepath.Join(bin, name)}, args...)...)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		// a pipe would stay open as long as the server runs
		log := testkit.Get(os.Create(filepath.Join(t.TempDir(), "log")))(t)
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			said, _ := os.ReadFile(log.Name())
			server, _ := os.ReadFile(filepath.Join(dir, "server.log"))
			t.Fatalf("%s: %v\n%s\n%s", name, err, said, server)
		}
	}
	secret := filepath.Join(dir, "password")
	testkit.Do(t, os.WriteFile(secret, []byte(password+"\n"), 0o644))
	data := filepath.Join(dir, "data")
	run("initdb", "--no-sync", "-A", "scram-sha-256", "-U", "parley", "--pwfile", secret, "--locale", "C", "-E",
		"UTF8", "-D", data)
	l := testkit.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	run("pg_ctl", "-D", data, "-w", "-l", filepath.Join(dir, "server.log"), "-o",
		fmt.Sprintf("-k %s -p %d -c listen_addresses=127.0.0.1 -c fsync=off", dir, port), "start")
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			run("pg_ctl", "-D", data, "-m", "immediate", "stop")
		}
	}
	t.Cleanup(stop)
	return fmt.Sprintf("postgres://parley:%s@127.0.0.1:%d/postgres?sslmode=disable",
		strings.ReplaceAll(password, " ", "%20"), port), stop
}
