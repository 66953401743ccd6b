//go:build linux && long

package acceptance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"parley/internal/testkit"
)

// terminal is a shell at a pseudo-terminal, into which a person types.
type terminal struct {
	t     *testing.T
	name  string
	keys  *os.File
	said  record
	shell *exec.Cmd
	from  int // where what the last command says begins
}

// prompt is what no command prints.
const prompt = "ready\x01"

func newTerminal(t *testing.T, name, dir string) *terminal {
	t.Helper()
	keys := testkit.Get(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	fd := int(keys.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 300})
	}
	if err != nil {
		t.Fatal(err)
	}
	screen := testkit.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	x := &terminal{t: t, name: name, keys: keys, shell: exec.Command("sh", "-i")}
	x.shell.Dir = dir
	x.shell.Env = append(os.Environ(), "PS1="+prompt, "ENV=", "TERM=dumb")
	x.shell.Stdin, x.shell.Stdout, x.shell.Stderr = screen, screen, screen
	x.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testkit.Do(t, x.shell.Start())
	screen.Close()
	done := make(chan struct{})
	go func() { // until the last process has closed the terminal
		defer close(done)
		piece := make([]byte, 4096)
		for {
			n, err := keys.Read(piece)
			x.said.Write(piece[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		foreground, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if err == nil && foreground != x.shell.Process.Pid {
			syscall.Kill(-foreground, syscall.SIGKILL)
		}
		x.shell.Process.Kill()
		x.shell.Wait()
		<-done
		keys.Close()
		if t.Failed() {
			t.Logf("%s:\n%s", name, x.said.since(0))
		}
	})
	x.ready()
	return x
}

// shows waits until the terminal shows a text after what stood there before from.
func (x *terminal) shows(text string) {
	x.t.Helper()
	err := eventually(func() error {
		said := strings.ReplaceAll(x.said.since(x.from), "\r\n", "\n")
		if !strings.Contains(said, text) {
			return errors.New("it does not")
		}
		return nil
	})
	if err != nil {
		x.t.Fatalf("%s shows %q: %v", x.name, text, err)
	}
}

// ready waits for the prompt.
func (x *terminal) ready() {
	x.t.Helper()
	x.shows(prompt)
}

// types types a line.
func (x *terminal) types(line string) {
	x.t.Helper()
	x.from = len(x.said.since(0))
	if _, err := x.keys.WriteString(line); err != nil {
		x.t.Fatal(err)
	}
}

var (
	aTerminal = regexp.MustCompile(`(?i)terminal (\d)`)
	aPress    = regexp.MustCompile(`(?i)press Ctrl-C in terminal (\d)`)
)

// The tutorial is typed as it stands, in a fresh clone, into four terminals. Each
// shows what the tutorial says that it shows, and each site has its report.
func TestTutorial(t *testing.T) {
	clone := t.TempDir() + "/parley"
	if out, err := exec.Command("git", "clone", "-q", root, clone).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := testkit.Get(os.ReadFile(clone + "/docs/tutorials/three-hospitals.md"))(t)
	terminals := map[string]*terminal{}
	for _, n := range []string{"1", "2", "3", "4"} {
		terminals[n] = newTerminal(t, "terminal "+n, clone)
	}
	at, commands := terminals["1"], 0
	busy := map[*terminal]bool{}
	// Blocks alternate with what is told between them.
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 0 {
			for _, paragraph := range strings.Split(part, "\n\n") {
				paragraph = strings.ReplaceAll(paragraph, "\n", " ")
				if all := aTerminal.FindAllStringSubmatch(paragraph, -1); all != nil {
					at = terminals[all[len(all)-1][1]]
				}
				if m := aPress.FindStringSubmatch(paragraph); m != nil {
					terminals[m[1]].types("\x03")
					terminals[m[1]].ready()
					busy[terminals[m[1]]] = false
				}
				if strings.Contains(paragraph, "answer `y`") {
					at.shows("[y/N] ")
					at.types("y\n")
				}
			}
			continue
		}
		kind, lines, _ := strings.Cut(part, "\n")
		for line := range strings.Lines(lines) {
			line = strings.TrimSuffix(line, "\n")
			switch command, ok := strings.CutPrefix(line, "$ "); {
			case kind == "console" && ok:
				if busy[at] {
					at.ready() // the command before has ended
				}
				at.types(command + "\n")
				busy[at] = true
				commands++
			case kind == "text" && line != "":
				at.shows(line)
			default:
				t.Errorf("the tutorial has a line %q in a block %q", line, kind)
			}
		}
	}
	if commands < 10 {
		t.Errorf("only %d commands were found", commands)
	}
	for _, s := range three {
		if found, err := os.ReadDir(clone + "/demo/" + s + "/results"); err != nil || len(found) != 1 {
			t.Errorf("site %s has %d results (%v)", s, len(found), err)
		} else if page, err := os.ReadFile(clone + "/demo/" + s + "/results/" + found[0].Name() +
			"/report.html"); err != nil || len(page) < 1000 {
			t.Errorf("site %s has a report of %d bytes (%v)", s, len(page), err)
		}
	}
}
