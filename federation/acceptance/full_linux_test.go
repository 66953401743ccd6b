package acceptance

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/federation"
	"parley/internal/testkit"
)

// limit makes every write of a process fail that would make a file longer than so
// many bytes, until it is freed: the nearest to a full disk that needs no rights. A
// write that goes beyond is torn, as it is there. (The error is EFBIG, not ENOSPC.)
func limit(process int, bytes uint64) error {
	return unix.Prlimit(process, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil)
}

func unlimit(process int) error { return limit(process, unix.RLIM_INFINITY) }

// handles limits the file handles of a process: 0 for no more than it has.
func handles(process int, n uint64) error {
	return unix.Prlimit(process, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: enoughHandles}, nil)
}

const enoughHandles = 4096

// A full disk, or a full table of file handles, at either end holds a study up, and nothing
// more: it goes on as soon as there is room, without anybody's doing. It is said once.
func TestFullDisksHoldAStudyUp(t *testing.T) {
	for i, name := range []string{"", three[0], "", three[0]} {
		fill, free, says := func(p int) error { return limit(p, 0) }, unlimit, "file too large|disk I/O error"
		if i >= 2 {
			fill, free, says = func(p int) error { return handles(p, 0) }, func(p int) error {
				return handles(p, enoughHandles)
			}, "too many open files"
		}
		t.Run(called(name)+": "+says, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, written(t, factorPlan("full", "", exact)), three...)
			w.coordinate()
			w.join("--yes")
			for _, s := range three[1:] {
				w.serve(s)
			}
			w.serve("north")
			w.says("north", "serving site north")
			p := w.life(name)
			testkit.Do(t, fill(p.cmd.Process.Pid))
			w.until("it is full", func() error {
				if regexp.MustCompile(says).MatchString(p.said.since(p.from)) {
					return nil
				}
				return errors.New("nothing has been written")
			})
			pause(3 * time.Second)
			if name != "" && i < 2 {
				w.coordinatorSees("full", name, federation.Unable, "disk")
			}
			if p.ended() {
				t.Fatalf("%s has ended: %v", called(name), p.err)
			}
			times := map[string]int{}
			for line := range strings.Lines(p.said.since(p.from)) {
				if at, text, _ := strings.Cut(line, ": "); regexp.MustCompile(says).MatchString(line) {
					if times[text]++; times[text] > 1 {
						t.Errorf("%s says again: %s", at, text)
					}
				}
			}
			testkit.Do(t, free(p.cmd.Process.Pid))
			w.delivered("full")
			w.same("full")
			w.clean("full")
			w.until("no file is left over", func() error { // one may be under way
				if left, _ := filepath.Glob(filepath.Join(w.dir, "*", ".*")); len(left) > 0 {
					return fmt.Errorf("files are left over: %v", left)
				}
				return nil
			})
		})
	}
}
