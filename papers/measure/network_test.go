package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"parley/internal/testkit"
)

// What passes at the sockets is bounded by the bodies, and the model has the bytes of one process.
func TestBytesAtTheSocket(t *testing.T) {
	for _, sites := range testkit.Sized([]int{60}, []int{200, 1000}) {
		t.Run(fmt.Sprint(sites), func(t *testing.T) { bytesAtTheSocket(t, sites) })
	}
}

func bytesAtTheSocket(t *testing.T, sites int) {
	o := networkOptions{sites: sites, rounds: 5, features: 88, dir: t.TempDir()}
	r := testkit.Get(measureNetwork(t.Context(), o, t.Logf))(t)
	t.Log(r)
	if r.socket > r.bound() {
		t.Errorf("%.0f bytes for each site and round, above %.0f", r.socket, r.bound())
	}
	if r.all > 20_000 {
		t.Errorf("%.0f bytes for a site at the beginning and the end", r.all)
	}
	if r.rss > 256<<20 {
		t.Errorf("the coordinator needed %d MB", r.rss>>20)
	}
	results := testkit.Get(filepath.Glob(filepath.Join(o.dir, "coordinator", "results", "*")))(t)[0]
	plan := append(testkit.Get(os.ReadFile(filepath.Join(results, "plan.yaml")))(t), "\nlocal:\n  sites:\n"...)
	for i := range o.sites {
		plan = fmt.Appendf(plan, "    hospital-%03d: hospital-%03d/data\n", i, i)
	}
	path, out := filepath.Join(o.dir, "plan.yaml"), filepath.Join(o.dir, "out")
	testkit.Do(t, os.WriteFile(path, plan, 0o600))
	testkit.Get(exec.Command(filepath.Join(o.dir, "parley"), "run", path, "--out", out).Output())(t)
	model := filepath.Join("model", "model.json")
	if got, want := testkit.Get(os.ReadFile(filepath.Join(results, model)))(t),
		testkit.Get(os.ReadFile(filepath.Join(out, model)))(t); !bytes.Equal(got, want) {
		t.Error("the model has other bytes than in one process")
	}
}
