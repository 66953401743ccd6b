package acceptance

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// limit makes every write of a process fail that would make a file longer than so
// many bytes, until it is freed: the nearest to a full disk that needs no rights. A
// write that goes beyond is torn, as it is there. (The error is EFBIG, not ENOSPC.)
func limit(process int, bytes uint64) error {
	return unix.Prlimit(process, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil)
}

func unlimit(process int) error { return limit(process, unix.RLIM_INFINITY) }

// A full disk at either end holds a study up, and nothing more: it goes on as soon as
// there is room, without anybody's doing.
func TestFullDisksHoldAStudyUp(t *testing.T) {
	for _, name := range append([]string{""}, three[:1]...) {
		t.Run(called(name), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, written(t, factors("full", "", exact)), three...)
			w.coordinate()
			w.join("--yes")
			for _, s := range three[1:] {
				w.serve(s)
			}
			w.serve("north")
			w.until("site north serves", func() error {
				if !strings.Contains(w.said["north"].since(0), "serving site north") {
					return errors.New("it does not")
				}
				return nil
			})
			p := w.life(name)
			if err := limit(p.cmd.Process.Pid, 0); err != nil {
				t.Fatal(err)
			}
			w.until("the disk is full", func() error {
				if s := p.said.since(p.from); strings.Contains(s, "file too large") || strings.Contains(s, "disk I/O error") {
					return nil
				}
				return errors.New("nothing has been written")
			})
			if p.ended() {
				t.Fatalf("%s has ended: %v", called(name), p.err)
			}
			if err := unlimit(p.cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
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
