//go:build unix

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/internal/testkit"
)

const manyRounds = `parley: 1
name: small
sites: [north, centre, south]
views:
  - {name: clinic, features: [weight, score]}
  - {name: genes, features: [g2]}
method: {name: fed-mv-ppca, latent: 1, rounds: 120, iterations: 2}
privacy: {protection: none}
local:
  data: small/data
  split: {scenario: IID}
`

const byDefault = `parley: 1
name: small
sites: [north, centre, south]
views:
  - {name: clinic, features: [age, weight, score]}
  - {name: genes, features: [g1, g2]}
method: {name: factors, latent: 1}
privacy: {protection: none}
local:
  data: small/data
  split: {scenario: IID}
`

// program is the program in a folder with a plan and data.
type program struct {
	t           *testing.T
	binary, dir string
}

func build(t *testing.T, plan string) program {
	t.Helper()
	p := program{t: t, dir: t.TempDir(), binary: testkit.Get(exec.LookPath("parley"))(t)} // this test's own
	testkit.Do(t, writeData(filepath.Join(p.dir, "small")))
	testkit.Do(t, os.WriteFile(filepath.Join(p.dir, "plan.yaml"), []byte(plan), 0o644))
	return p
}

// run runs the plan on so many processors, and sends a signal as soon as that
// many rounds have been told of.
func (p program) run(out string, processors int, sig os.Signal, after int) (state *os.ProcessState, said string) {
	p.t.Helper()
	cmd := exec.Command(p.binary, "run", "plan.yaml", "--out", out)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", processors))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	var b strings.Builder
	rounds := 0
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		b.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "round ") {
			if rounds++; rounds == after {
				cmd.Process.Signal(sig) // an error means that it has just ended
			}
		}
	}
	cmd.Wait() // its error is told by the state
	return cmd.ProcessState, b.String()
}

// finish runs the plan to its end.
func (p program) finish(out string, processors int) (said string) {
	p.t.Helper()
	state, said := p.run(out, processors, nil, -1)
	if !state.Success() {
		p.t.Fatalf("%v:\n%s", state, said)
	}
	return said
}

func (p program) same(a, b string) {
	p.t.Helper()
	if err := compareResults(filepath.Join(p.dir, a), filepath.Join(p.dir, b)); err != nil {
		p.t.Errorf("%s and %s: %v", a, b, err)
	}
}

// Killed and interrupted again and again, at moments that nobody chose, a study
// ends with the bytes of one that ran through; so it does on another number of
// processors.
func TestStoppedRunsContinueToTheSameBytes(t *testing.T) {
	t.Parallel()
	p := build(t, manyRounds)
	p.finish("whole", 1)
	rng := rand.New(rand.NewPCG(2, 3))
	told := 0
	stops := []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL,
		syscall.SIGKILL}[:testkit.Sized(3, 5)]
	for i, sig := range stops {
		n := 1 + rng.IntN(18)
		state, said := p.run("stopped", 2, sig, n)
		switch status := state.Sys().(syscall.WaitStatus); {
		case sig == syscall.SIGKILL:
			if !status.Signaled() || status.Signal() != sig {
				t.Fatalf("stop %d: %v:\n%s", i, state, said)
			}
		case state.ExitCode() != exitInterrupted,
			!strings.HasSuffix(said, "parley: interrupted; run the same command again to continue\n"):
			t.Fatalf("stop %d, %v: %v:\n%s", i, sig, state, said)
		}
		told += n - 1 // the first may be the one that was told of last
	}
	said := p.finish("stopped", 2)
	if !strings.Contains(said, "continuing from the last checkpoint\n") || strings.Count(said, "\nround ") > 122-told {
		t.Errorf("after %d rounds and more, the last run began anew:\n%.400s", told, said)
	}
	p.same("whole", "stopped")
}

func TestKilledEarlyAndLate(t *testing.T) {
	t.Parallel()
	p := build(t, byDefault)
	p.finish("whole", 1)
	p.finish("two", 2)
	p.same("whole", "two")
	for _, n := range []int{1, 3, 5, 6}[testkit.Sized(2, 0):] { // the last round is told of before anything is written
		out := fmt.Sprintf("killed-%d", n)
		p.run(out, 2, syscall.SIGKILL, n)
		p.finish(out, 2)
		p.same("whole", out)
	}
}
