package federation_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/engine/host"
	"parley/federation"
	"parley/federation/site"
)

// standing is where a site says that it stands with a study.
func (w *world) standing(name, digest string) (s site.StudyStatus) {
	status, err := w.folder(name).ReadStatus()
	check(w.t, err)
	for _, st := range status.Studies {
		if st.Study == digest {
			s = st
		}
	}
	return s
}

// Beside a daemon, a person says that the rows are elsewhere: what was approved before
// is asked for again, and what is approved then is answered.
func TestDataMoveWhileServing(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.join("north")
	w.begin("north")
	d := w.submit(plan("moved", 2, 2, "north", "south"))
	w.approve(d, "north")
	is := func(word string) {
		t.Helper()
		w.eventually("the study is "+word, func() bool { return w.standing("north", d).State == word })
	}
	is(federation.Approved)
	elsewhere := filepath.Join(w.dir, "elsewhere")
	check(t, os.CopyFS(elsewhere, os.DirFS(filepath.Join(w.path("north"), "data"))))
	check(t, os.WriteFile(filepath.Join(elsewhere, "view_v.csv"), []byte("id,x\na,1\nb,2\nc,4\n"), 0o600))
	check(t, w.folder("north").SetData(elsewhere))
	is(federation.Pending)
	check(t, w.folder("north").Approve(context.Background(), d, host.ByPerson))
	is(federation.Approved)
}

// Who joins before any study has been submitted is told so at once.
func TestJoinBeforeAnyStudy(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.join("north")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	check(t, w.folder("north").WaitForStudies(ctx, nil))
	check(t, ctx.Err())
}
