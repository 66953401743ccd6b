package coordinator

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/federation"
	"parley/internal/testkit"
)

// A study that is done stays so before a program that can no longer read its plan.
func TestDoneStudiesOutliveTheirPlans(t *testing.T) {
	f, digest := &Folder{Folder: federation.Folder{Path: t.TempDir()}}, strings.Repeat("ab", 32)
	testkit.Do(t, os.MkdirAll(f.StudyPath(digest), 0o700))
	testkit.Do(t, os.WriteFile(filepath.Join(f.StudyPath(digest), federation.PlanFile), []byte("older"), 0o600))
	testkit.Do(t, f.saveState(digest, studyState{State: Ended, Delivered: []string{"north"}}))
	d := &Daemon{Folder: f, Log: slog.New(slog.DiscardHandler), studies: map[string]*running{}}
	testkit.Do(t, d.takeUp(t.Context(), digest))
	if h := d.handed(digest, "north"); len(h.Files) > 0 {
		t.Errorf("results of a plan that cannot be read: %v", h.Files)
	}
	if st := testkit.Get(f.loadState(digest))(t); st.State != Ended || len(st.Delivered) != 1 {
		t.Errorf("it is %q, handed to %v", st.State, st.Delivered)
	}
}
