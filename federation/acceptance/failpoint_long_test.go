//go:build long && unix

package acceptance

import (
	"fmt"
	"testing"
)

// failpoints are where a program of the chaos test dies if FAILPOINT is NAME:N, when it comes
// there for the Nth time: between a charge, its release in the store, its mark in the receipts and
// its answer at the broker; and between the checkpoint of a coordinator, its tasks, and the record of what
// it has folded. They stand in no program but that one.
var failpoints = []struct{ name, file, before string }{
	{"charge", "engine/site.go", "\tif s.differential(t.Kind) {\n\t\t// What was charged"},
	{"store", "engine/site.go", "\tr, ok, err := s.Gate.Stored(ask)\n\tif err == nil && !ok {"},
	{"receipt", "engine/site.go", "\tn, _, err := s.Store.Head(s.Study)\n\treturn Answer{"},
	{"answer", "engine/wire/server.go", "\tfor tries := 0; ; tries++ {\n\t\tif tries > 0 {\n\t\t\tif err := " +
		"Pause(ctx, s.Again/100)"},
	{"put", "engine/wire/server.go", "\t\t\ts.put = revision\n\t\t\treturn nil"},
	{"checkpoint", "engine/engine.go", "\tfor _, o := range fresh {\n\t\tif err := r.send"},
	{"fold", "engine/collect.go", "\tif err := r.record(round.Round, releases, left)"},
	{"record", "engine/collect.go", "\tr.rounds = append(r.rounds, round)\n\treturn nil"},
}

const failpoint = `package %s

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var passed atomic.Int64

func failpoint(name string) {
	at, n, _ := strings.Cut(os.Getenv("FAILPOINT"), ":")
	if at == name && strconv.FormatInt(passed.Add(1), 10) == n {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
`

// mortal is the program with the failpoints.
func mortal(t *testing.T) string {
	t.Helper()
	changes := []change{{"engine/failpoint.go", "", fmt.Sprintf(failpoint, "engine")},
		{"engine/wire/failpoint.go", "", fmt.Sprintf(failpoint, "wire")}}
	for _, p := range failpoints {
		changes = append(changes, change{p.file, p.before, fmt.Sprintf("failpoint(%q)\n", p.name) + p.before})
	}
	return changed(t, "mortal", changes...)
}
